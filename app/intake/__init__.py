"""From requests to stored jobs: what the API, the pages and the command line share."""
