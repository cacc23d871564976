# The images of the API and of the worker: `docker build --target api .` and `docker build --target worker .`
#
# Node runs the TypeScript sources directly, so nothing is compiled. Both images run as the user node (uid 1000), write
# nothing to their file system (run them with --read-only), and shut down on SIGTERM, which node receives directly.

FROM node:24-bookworm-slim AS base
WORKDIR /app
ENV NODE_ENV=production

# Readable by uid 1000, whatever the umask of the checkout
FROM base AS sources
COPY . .
RUN chmod -R a+rX,go-w .

# Only the package.json files, so that changed sources do not repeat the installation
FROM sources AS manifests
RUN find . -type f ! -name package.json ! -name package-lock.json -delete && find . -type d -empty -delete

# The dependencies of one app, without files that are never read at run time. No dependency needs its install script.
FROM base AS api-dependencies
COPY --from=manifests /app .
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund --workspace apps/api \
  && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete

FROM base AS worker-dependencies
COPY --from=manifests /app .
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund --workspace apps/worker \
  && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete

FROM base AS api
COPY --from=api-dependencies /app .
COPY --from=sources /app/packages packages
COPY --from=sources /app/apps/api apps/api
# Listen on all interfaces of the container; its user decides which ports to publish.
ENV BULLPEN_API_HOST=0.0.0.0 \
  BULLPEN_API_PORT=8080 \
  BULLPEN_API_METRICS_HOST=0.0.0.0 \
  BULLPEN_API_METRICS_PORT=9464
EXPOSE 8080 9464
# What Node has compiled is part of the image, so that a container starts with about half the CPU time. Node uses only what the same user
# has compiled.
RUN install -d -o 1000 compile-cache
USER 1000:1000
ENV NODE_COMPILE_CACHE=/app/compile-cache
RUN node apps/api/src/main.ts --help
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.BULLPEN_API_PORT}/livez`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "apps/api/src/main.ts"]

FROM base AS worker
COPY --from=worker-dependencies /app .
COPY --from=sources /app/packages packages
COPY --from=sources /app/apps/worker apps/worker
ENV BULLPEN_WORKER_HOST=0.0.0.0 \
  BULLPEN_WORKER_PORT=9464
EXPOSE 9464
RUN install -d -o 1000 compile-cache
USER 1000:1000
ENV NODE_COMPILE_CACHE=/app/compile-cache
RUN node apps/worker/src/main.ts --help
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.BULLPEN_WORKER_PORT}/livez`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "apps/worker/src/main.ts"]
