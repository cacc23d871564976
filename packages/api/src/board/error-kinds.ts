// Names the kinds of error of a queue's dead tasks, which the board lists like queues, so that one kind can be retried or deleted.
import type { FingerprintCount } from '@bullpen/engine/internal'

/** An entry in the board's menu: a queue or, with a fingerprint, the dead tasks of a queue with one kind of error. */
export interface BoardEntry {
  readonly queue: string
  readonly fingerprint?: string
}

/** Separates the name of a group from the names of its entries in the menu. The name of a queue does not contain this character. */
export const DELIMITER = ':'

/** The code is there for readers. The fingerprint identifies the kind. */
const KIND_NAME = /^dead in (?<queue>[^:]+):[^:]* (?<fingerprint>other|[0-9a-f]{16})$/

/** How many characters of an error's message the board shows. */
const MESSAGE_LENGTH = 80

export function kindName(queue: string, { code, fingerprint }: Pick<FingerprintCount, 'code' | 'fingerprint'>): string {
  return `dead in ${queue}${DELIMITER}${code.replaceAll(DELIMITER, ' ')} ${fingerprint}`
}

/** Returns the entry with this name, which may not exist. */
export function readEntry(name: string): BoardEntry {
  const { queue, fingerprint } = KIND_NAME.exec(name)?.groups ?? {}
  return queue === undefined || fingerprint === undefined ? { queue: name } : { queue, fingerprint }
}

/** Describes a kind of error to the users of the board. The count is undefined if no dead task has such an error. */
export function kindTexts(count: FingerprintCount | undefined): {
  readonly displayName: string
  readonly description: string
} {
  if (count === undefined)
    return { displayName: 'no such errors', description: 'No dead task has this kind of error any more.' }
  const { code, message, oldestAt, newestAt } = count
  const [oldest, newest] = [oldestAt, newestAt].map((at) => new Date(at).toISOString())
  return {
    displayName: [code, message.slice(0, MESSAGE_LENGTH)].filter((text) => text !== '').join(': ') || count.fingerprint,
    description: `${count.count} dead ${count.count === 1 ? 'task has' : 'tasks have'} this kind of error. Oldest: ${oldest}, newest: ${newest}`,
  }
}
