"""The metadata that every table belongs to, and the column types they share."""

from sqlalchemy import MetaData
from sqlalchemy.dialects.postgresql import TIMESTAMP

metadata = MetaData(schema="onthedot")
timestamptz = TIMESTAMP(timezone=True)
