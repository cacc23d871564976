// Reads what Redis knows of a stream as a whole.
import { STREAM_START } from '@bullpen/engine/internal'
import type { Commander } from '../scripts/script.ts'

export interface StreamInfo {
  /** The id of the oldest entry. Undefined if there is none. */
  readonly first: string | undefined
  /** The id of the newest entry that the stream ever had, or {@link STREAM_START}. */
  readonly last: string
  readonly length: number
  /** How many entries were ever added. Undefined before Redis 7, which is the first version that counts them. */
  readonly added: number | undefined
}

const NO_STREAM: StreamInfo = { first: undefined, last: STREAM_START, length: 0, added: 0 }

/** Takes one round trip. */
export async function streamInfo(redis: Commander, key: string): Promise<StreamInfo> {
  try {
    const reply = (await redis.xinfo('STREAM', key)) as unknown[]
    const info = new Map(reply.flatMap((name, i) => (i % 2 === 0 ? [[String(name), reply[i + 1]] as const] : [])))
    const first = info.get('first-entry')
    return {
      first: Array.isArray(first) ? String(first[0]) : undefined,
      last: String(info.get('last-generated-id')),
      length: Number(info.get('length')),
      added: info.has('entries-added') ? Number(info.get('entries-added')) : undefined,
    }
  } catch (error) {
    if (error instanceof Error && error.message.includes('no such key')) return NO_STREAM
    throw error
  }
}
