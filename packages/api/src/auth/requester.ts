// Names the requester of a command or a cancellation for audit records.
import type { FastifyRequest } from 'fastify'

/**
 * Returns a name such as `ann (key 0813ba6d)` or, if the key has a name, `ann (key shop 0813ba6d)`. The caller provides the first part,
 * which cannot be verified. The key has been verified.
 */
export function requesterOf({ keyFingerprint, apiKeyName }: FastifyRequest, name: string | undefined): string {
  const hasName = apiKeyName !== keyFingerprint
  const key = `key ${hasName ? `${apiKeyName} ` : ''}${keyFingerprint ?? 'unknown'}`
  return name === undefined ? key : `${name} (${key})`
}

/** Like {@link requesterOf}, with the name from a body that has been validated: undefined, null, or an object with an optional name. */
export function requesterIn({ request, body }: { readonly request: FastifyRequest; readonly body: unknown }): string {
  return requesterOf(request, ((body ?? {}) as { readonly by?: string }).by)
}
