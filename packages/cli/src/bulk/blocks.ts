// Divides the lines of a file into blocks of 1,000, and builds the requests that enqueue them.
//
// A request's idempotency key and a task's index in the request together identify the task. For a command that is repeated after some
// lines were corrected, each line must have the same key and index as before. The key is therefore that of the line's block, and the
// index is the line's position in its block. A line that is not sent, because it is blank, invalid, or part of another request,
// leaves a gap, which is filled with a task that the API rejects.
import type { EnqueueRequest } from '@bullpen/contract'
import { MAX_BULK_TASKS } from '@bullpen/contract/internal'
import type { BadLine, TaskLine } from './task-lines.ts'

const GAP: EnqueueRequest = { task: '-', input: null }

/** Returns the number of a line's block. The first block is 1. */
export function blockOf({ number }: TaskLine): number {
  return Math.ceil(number / MAX_BULK_TASKS)
}

/**
 * Yields the tasks in groups, each from a single block. A group ends with its block, or when its tasks have about `maxBytes` bytes.
 * Calls `onBad` for each line that is not a task.
 */
export async function* groupLines(
  lines: AsyncIterable<TaskLine | BadLine>,
  maxBytes: number,
  onBad: (line: BadLine) => void,
): AsyncGenerator<readonly TaskLine[]> {
  let group: TaskLine[] = []
  let bytes = 0
  for await (const line of lines) {
    if ('problem' in line) {
      onBad(line)
      continue
    }
    const [first] = group
    const isFull = first !== undefined && (blockOf(first) !== blockOf(line) || bytes + line.bytes > maxBytes)
    if (isFull) {
      yield group
      group = []
      bytes = 0
    }
    group.push(line)
    bytes += line.bytes
  }
  if (group.length > 0) yield group
}

/** Returns the lines from the beginning that together have at most `maxBytes` bytes, but at least one line. */
export function firstPart(lines: readonly TaskLine[], maxBytes: number): readonly TaskLine[] {
  let bytes = 0
  const end = lines.findIndex((line, i) => {
    bytes += line.bytes
    return i > 0 && bytes > maxBytes
  })
  return end === -1 ? lines : lines.slice(0, end)
}

/** Returns the index of a line's task in a request. */
export function indexOf({ number }: TaskLine): number {
  return (number - 1) % MAX_BULK_TASKS
}

/** Returns the tasks of a request with these lines, which belong to one block. */
export function tasksOf(lines: readonly TaskLine[]): readonly EnqueueRequest[] {
  const tasks: EnqueueRequest[] = []
  for (const line of lines) tasks[indexOf(line)] = line.task
  return Array.from(tasks, (task) => task ?? GAP)
}
