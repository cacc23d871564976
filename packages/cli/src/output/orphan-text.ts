// Formats keys of Redis that belong to nothing as text.
import type { Orphan, OrphanRef } from '@bullpen/contract'
import { count, plain } from './format.ts'

const REASON_WIDTH = 13

/** Formats an orphan as one line, such as `no_owner       {bullpen.cpu}:cpu:cpu-01jd…:lock  (<task>:lock of a task)`. */
export function orphanLine(orphan: Orphan): string {
  const { reason, key, queue, kind, owner, keys } = orphan
  const start = reason.padEnd(REASON_WIDTH)
  if (reason === 'unknown_queue')
    return `${start}  queue ${plain(queue ?? '')}, ${count(keys ?? 1, 'key')} such as ${plain(key)}`
  const about = kind === undefined ? '' : `  (${kind}${owner === undefined ? '' : `, owner: ${plain(owner)}`})`
  return `${start}  ${refLine(orphan)}${about}`
}

/** Formats the name of a key, or of an entry of a key. */
export function refLine({ key, entry }: OrphanRef): string {
  return plain(entry === undefined ? key : `${key}  ${entry}`)
}

/** Describes what a search has found, such as `2 orphans among 40 keys and entries: 1 without an owner, which can be deleted`. */
export function summaryLine(found: {
  readonly examined: number
  readonly orphans: number
  readonly certain: number
}): string {
  const { examined, orphans, certain } = found
  if (orphans === 0) return `no orphans: each of ${examined} keys and entries has an owner`
  const deletable =
    certain === 0
      ? 'none without an owner, so that --delete deletes none'
      : `${certain} without an owner, which --delete deletes`
  return `${count(orphans, 'orphan')} among ${examined} keys and entries: ${deletable}`
}
