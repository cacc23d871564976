// bullpen watch: prints the events of a task or a group until it has ended, or those of a queue or a tag.
import type { Client, GroupStreamEvent, QueueEvent, TaskStreamEvent } from '@bullpen/client'
import { isFinal } from '@bullpen/contract'
import { UsageError } from '../arguments/usage-error.ts'
import { WHILE_WAITING } from '../connection.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { eventLines } from '../output/tasks/event-text.ts'
import type { CommandContext } from './command-context.ts'

type WatchedEvent = TaskStreamEvent | GroupStreamEvent | QueueEvent

export async function watch({ positionals: [id], values, connect, out }: CommandContext): Promise<ExitCode> {
  const { group, queue, tag = [] } = values
  const given = [id, group, queue, ...tag].filter((each) => each !== undefined)
  if (given.length !== 1) throw new UsageError('specify one of: the id of a task, --group, --queue or --tag')
  const [onlyTag = ''] = tag
  const events = eventsOf(connect(WHILE_WAITING), { id, group, queue, tag: onlyTag })
  let exitCode: ExitCode = EXIT.success
  for await (const event of events) {
    exitCode = exitCodeAfter(event, id)
    const isRead = await out.answer(event, (layout) => eventLines(event, layout, id === undefined))
    if (!isRead) break
  }
  return exitCode
}

interface Subject {
  readonly id: string | undefined
  readonly group: string | undefined
  readonly queue: string | undefined
  readonly tag: string
}

function eventsOf(client: Client, { id, group, queue, tag }: Subject): AsyncIterable<WatchedEvent> {
  if (id !== undefined) return client.taskEvents(id)
  if (group !== undefined) return client.group(group).events()
  return client.events(queue === undefined ? { tag } : { queue })
}

/** Returns the exit code if this event is the last one. `id` is that of the task, if a task is watched. */
function exitCodeAfter(event: WatchedEvent, id: string | undefined): ExitCode {
  if (event.type === 'group_ended') return event.group.result === 'completed' ? EXIT.success : EXIT.incomplete
  const task = event.type === 'snapshot' && 'task' in event ? event.task : event
  if (id === undefined || !('status' in task) || !isFinal(task.status)) return EXIT.success
  return task.status === 'completed' ? EXIT.success : EXIT.incomplete
}
