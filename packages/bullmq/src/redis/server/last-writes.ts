// Reads whether Redis could write to its disk the last time it tried.
import { infoField } from './server-info.ts'

/** What Redis writes, and the field of INFO that says whether it could. */
const WRITES = {
  aof: { field: 'aof_last_write_status', text: 'the append-only file' },
  rewrite: { field: 'aof_last_bgrewrite_status', text: 'a rewrite of the append-only file' },
  snapshot: { field: 'rdb_last_bgsave_status', text: 'a snapshot' },
} as const

export type DiskWrite = keyof typeof WRITES

/** Returns whether the last write of each kind failed. Kinds that INFO does not contain are left out. */
export function failedWrites(info: string): ReadonlyMap<DiskWrite, boolean> {
  return new Map(
    Object.entries(WRITES).flatMap(([write, { field }]) => {
      const status = infoField(info, field)
      return status === undefined ? [] : [[write as DiskWrite, status === 'err'] as const]
    }),
  )
}

/** Names a write for people. */
export const writeText = (write: DiskWrite): string => WRITES[write].text
