// Who asked for a command or a cancel, as audit records name them.
import type { FastifyRequest } from 'fastify'

/** `ann (key 0813ba6d)`: the name that the caller gave, which cannot be checked, and the key, which has been. */
export function requesterOf({ keyFingerprint }: FastifyRequest, name: string | undefined): string {
  const key = `key ${keyFingerprint ?? 'unknown'}`
  return name === undefined ? key : `${name} (${key})`
}
