# syntax=docker/dockerfile:1
# The bot: it holds every secret, decides, and never runs a submission; so there is no PyTorch here.

FROM python:3.13.14-slim-bookworm AS wheel
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY bot bot
COPY migrations migrations
COPY runners runners
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13.14-slim-bookworm
RUN useradd --uid 10001 --home-dir /data --create-home --shell /usr/sbin/nologin podium
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-cache-dir /wheels/*.whl
ENV PYTHONUNBUFFERED=1 \
    MPLCONFIGDIR=/tmp \
    PODIUM_DATA_DIR=/data \
    PODIUM_RUNNERS=none
USER 10001
WORKDIR /data
VOLUME /data
# Healthy while a process holds the judge's lock: `podium up` takes it once all else is ready, and
# the system frees it when that process dies. It costs no Python, which would disturb what is timed.
HEALTHCHECK --interval=30s --timeout=5s --start-period=2m --start-interval=2s \
    CMD ["sh", "-c", "! flock --shared --nonblock \"$PODIUM_DATA_DIR/judge.lock\" true"]
CMD ["podium", "up"]
