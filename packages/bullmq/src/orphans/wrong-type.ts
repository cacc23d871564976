// Reads from keys that may have another type than expected.

/** Resolves with `otherwise` if Redis refuses a command because the key has another type. */
export function unlessWrongType<T>(reply: Promise<T>, otherwise: T): Promise<T> {
  return reply.catch((error: unknown) => {
    if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return otherwise
    throw error
  })
}
