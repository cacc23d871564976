// Converts the items of event streams to what the API sends.
import { streamedEvent } from '@bullpen/contract/internal'
import { type GroupItem, groupView, type QueueItem, type TaskItem } from '@bullpen/engine/internal'
import type { ApiContext } from '../../http/context.ts'
import type { Frame } from '../../http/event-stream.ts'
import { linkedTaskView } from '../../views/linked-task-view.ts'

type Item = TaskItem | QueueItem | GroupItem
type EventItem = Extract<QueueItem, { kind: 'event' }>

/** The JSON of events that several readers receive. */
const texts = new WeakMap<EventItem['event'], string>()

function eventText({ queue, event }: EventItem): string {
  const known = texts.get(event)
  if (known !== undefined) return known
  const text = JSON.stringify(streamedEvent(event.id, queue, event.taskId, event.body))
  texts.set(event, text)
  return text
}

/** Returns a function that converts the items of streams. */
export function eventFrames(context: Pick<ApiContext, 'hasBoard'>) {
  const view = linkedTaskView(context)

  const aboutSnapshot = (item: Extract<Item, { kind: 'snapshot' }>): object => {
    if ('task' in item) return { task: view(item.task) }
    return 'group' in item ? { group: groupView(item.group) } : { queues: item.queues }
  }

  const frameOf = (item: Item): Frame => {
    const { kind, cursor: id } = item
    switch (kind) {
      case 'event':
        return { id, type: item.event.body.type, data: eventText(item) }
      case 'gap':
        return { id, type: kind, data: JSON.stringify({ type: kind, id: item.from }) }
      case 'position':
        return { id }
      case 'snapshot':
        return { id, type: kind, data: JSON.stringify({ type: kind, id, ...aboutSnapshot(item) }) }
      case 'ended': {
        const type = 'group_ended'
        return { id, type, data: JSON.stringify({ type, id, group: groupView(item.group) }) }
      }
    }
  }

  return async function* (items: AsyncIterable<Item>): AsyncGenerator<Frame, void> {
    for await (const item of items) yield frameOf(item)
  }
}
