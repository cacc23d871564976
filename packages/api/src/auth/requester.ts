// Names the requester of a command or a cancellation for audit records.
import type { FastifyRequest } from 'fastify'

/**
 * Returns a name such as `ann (key 0813ba6d)`. The caller provides the first part, which cannot be verified. The key has been
 * verified.
 */
export function requesterOf({ keyFingerprint }: FastifyRequest, name: string | undefined): string {
  const key = `key ${keyFingerprint ?? 'unknown'}`
  return name === undefined ? key : `${name} (${key})`
}
