// Waits for Redis before a benchmark begins.

const RETRY_MS = 20

/** Resolves once the producer's connection is open, because the connection rejects commands until then. */
export async function untilReachable({ ping }: { readonly ping: () => Promise<void> }): Promise<void> {
  const isReachable = () =>
    ping().then(
      () => true,
      () => new Promise<false>((resolve) => setTimeout(resolve, RETRY_MS, false)),
    )
  while (!(await isReachable()));
}
