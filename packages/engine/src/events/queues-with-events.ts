// Decides which queues of a catalogue have events.
import type { Catalogue } from '@bullpen/contract'

/** Returns the queues that have a definition whose tasks have events. */
export function queuesWithEvents({
  queues,
  definitions,
}: Pick<Catalogue, 'queues' | 'definitions'>): readonly string[] {
  return queues.filter((queue) => definitions.some((each) => each.queue === queue && each.events))
}
