// Builds the reference page of the keys in Redis.
import { GROUP_KEYS, NAMESPACE_KEYS, QUEUE_KEYS, RUN_KEYS } from '../../../packages/bullmq/src/orphans/key-table.ts'
import { code, page, table } from './markdown.ts'

export function redisKeysPage(): string {
  const rowsOf = (
    keys: typeof QUEUE_KEYS | typeof NAMESPACE_KEYS | typeof GROUP_KEYS | typeof RUN_KEYS,
    definedBy: 'Bullpen' | 'BullMQ',
  ): string =>
    table(
      ['key', 'type', 'holds', 'owner', 'what ends it', 'always expires'],
      keys
        .filter((row) => row.definedBy === definedBy)
        .map(({ pattern, type, holds, owner, ends, expires }) => [
          code(pattern),
          type,
          holds,
          owner,
          ends,
          expires === true ? 'yes' : '',
        ]),
    )
  return page(
    'Redis keys',
    `
Everything that Bullpen and BullMQ keep in Redis belongs to something: to a task, a queue, a worker or another owner. When the owner is
gone, the key is deleted, or it expires. What belongs to a queue or a namespace as a whole stays as long as the queue or the namespace is
used, and is kept small in the way that the table names. \`bullpen doctor --orphans\` finds keys that belong to nothing. See
[Orphaned keys](../runbook/orphaned-keys.md).

The keys may change in any version. Do not write them with other programs.`,
    '## Keys of a queue',
    'All keys of a queue begin with `{NAMESPACE.QUEUE}:QUEUE:`, such as `{bullpen.cpu}:cpu:wait`.',
    '### Defined by Bullpen',
    rowsOf(QUEUE_KEYS, 'Bullpen'),
    '### Defined by BullMQ',
    rowsOf(QUEUE_KEYS, 'BullMQ'),
    '## Keys of a namespace',
    'The keys of a namespace begin with `{NAMESPACE}:`, such as `{bullpen}:leader:lease`.',
    rowsOf(NAMESPACE_KEYS, 'Bullpen'),
    '## Keys of a group',
    'All keys of a group begin with `{NAMESPACE:GROUP}:`, such as `{bullpen:group-01jd3v7n8q0000000000000000}:meta`.',
    rowsOf(GROUP_KEYS, 'Bullpen'),
    "## Keys of a pipeline's run",
    'All keys of a run begin with `{NAMESPACE:RUN}:`, such as `{bullpen:run-01jd3v7n8q0000000000000000}:meta`.',
    rowsOf(RUN_KEYS, 'Bullpen'),
  )
}
