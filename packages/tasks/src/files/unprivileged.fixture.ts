// Lets a test see a refused permission even where tests run as root, as in most containers.

const NOBODY = 65_534

/** Runs `body` as a user whom file modes hold for. */
export async function unprivileged<T>(body: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return body()
  process.seteuid?.(NOBODY)
  try {
    return await body()
  } finally {
    process.seteuid?.(0)
  }
}
