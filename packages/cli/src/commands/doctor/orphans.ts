// bullpen doctor --orphans: finds keys in Redis that belong to nothing, and deletes them on request.
import type { Client } from '@bullpen/client'
import type { Orphan, OrphansDeleted } from '@bullpen/contract'
import { MAX_DELETED_ORPHANS } from '@bullpen/contract/internal'
import { UsageError } from '../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { count } from '../../output/format.ts'
import { orphanLine, refLine, summaryLine } from '../../output/orphan-text.ts'
import type { CommandContext } from '../command-context.ts'

export async function examineOrphans(context: CommandContext): Promise<ExitCode> {
  const { values, out, connect } = context
  if (values.yes && !values.delete) throw new UsageError('--yes requires --delete')
  if (values.delete && !values.yes && (!context.isInteractive || out.json)) {
    throw new UsageError(
      'doctor --orphans --delete asks for confirmation, which requires a terminal; add --yes to confirm, or leave out --delete to list the orphans',
    )
  }
  const client = connect()
  const { orphans, examined } = await findAll(context, client)
  const certain = orphans.filter((orphan) => orphan.certain)
  const others = orphans.length - certain.length
  const summary = { examined, orphans: orphans.length, certain: certain.length }
  await out.answer(summary, () => [summaryLine(summary)])
  if (orphans.length === 0) return EXIT.success
  if (!values.delete || certain.length === 0) return EXIT.incomplete
  if (!values.yes && !(await context.confirm(`Delete ${count(certain.length, 'orphan')} without an owner?`))) {
    out.remark('nothing was deleted')
    return EXIT.incomplete
  }
  const kept = await deleteAll(context, client, certain)
  return kept + others === 0 ? EXIT.success : EXIT.incomplete
}

/** Finds all orphans, and lists each of them once. The keys of one unknown queue are listed as one orphan. */
async function findAll(
  { out }: CommandContext,
  client: Client,
): Promise<{ readonly orphans: readonly Orphan[]; readonly examined: number }> {
  const found = new Map<string, Orphan>()
  let examined = 0
  const onProgress = (total: number): void => {
    examined = total
    out.progress(`${total} keys and entries examined`)
  }
  for await (const orphan of client.orphans({ onProgress })) {
    const { key, entry, reason, queue, keys = 0 } = orphan
    const isQueue = reason === 'unknown_queue'
    const name = isQueue ? `queue ${queue}` : JSON.stringify([key, entry])
    const earlier = found.get(name)
    if (earlier === undefined) found.set(name, orphan)
    else if (isQueue) found.set(name, { ...earlier, keys: (earlier.keys ?? 0) + keys })
  }
  out.progress()
  const orphans = [...found.values()]
  for (const orphan of orphans) {
    const readerLeft = !(await out.answer(orphan, () => [orphanLine(orphan)]))
    if (readerLeft) break
  }
  return { orphans, examined }
}

/** Deletes these orphans, and returns how many were kept. */
async function deleteAll({ out, by }: CommandContext, client: Client, orphans: readonly Orphan[]): Promise<number> {
  const total: { deleted: OrphansDeleted['deleted']; kept: OrphansDeleted['kept'] } = { deleted: [], kept: [] }
  for (let i = 0; i < orphans.length; i += MAX_DELETED_ORPHANS) {
    const { deleted, kept } = await client.deleteOrphans({ orphans: orphans.slice(i, i + MAX_DELETED_ORPHANS), by })
    total.deleted.push(...deleted)
    total.kept.push(...kept)
  }
  await out.answer(total, () => [
    `deleted ${total.deleted.length} of ${count(orphans.length, 'orphan')}`,
    ...total.kept.map((ref) => `kept, because it has an owner or does not exist any more: ${refLine(ref)}`),
  ])
  return total.kept.length
}
