// Reports the kinds of error that have appeared among a queue's dead tasks.
import { z } from 'zod'
import { parseJson } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'

export interface NewFingerprint {
  readonly fingerprint: string
  readonly state: string
  readonly code: string
  /** The masked message. */
  readonly message: string
}

/** The maximum number of fingerprints that are read at a time. */
const PAGE_SIZE = 100

const infoSchema = z.object({ state: z.string(), code: z.string(), message: z.string() })

/**
 * Calls `onNew` for each fingerprint that has appeared and has not been reported. A fingerprint is removed from the list only after
 * the call, so if this process dies in between, the next leader reports the fingerprint again. A fingerprint whose tasks are no
 * longer dead is not reported. Takes two round trips, and one more for each fingerprint.
 */
export async function reportFingerprints(
  redis: Commander,
  keys: QueueKeys,
  onNew: (found: NewFingerprint) => void,
): Promise<void> {
  const found = await redis.lrange(keys.newFingerprints, 0, PAGE_SIZE - 1)
  if (found.length === 0) return
  const infos = await redis.hmget(keys.fingerprints, ...found)
  for (const [i, fingerprint] of found.entries()) {
    const info = infoSchema.safeParse(parseJson(infos[i] ?? undefined))
    if (info.success) onNew({ fingerprint, ...info.data })
    await redis.lrem(keys.newFingerprints, 1, fingerprint)
  }
}
