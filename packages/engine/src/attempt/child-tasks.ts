// Enqueues the child tasks of an attempt, each of them once.
import { BullpenError, type ChildOptions, type Enqueued, type TaskId } from '@bullpen/contract'
import { isStored } from '@bullpen/contract/internal'
import type { NewTask } from '../ports/broker/new-task.ts'
import type { Clock } from '../ports/clock.ts'
import type { EventSink } from '../ports/event-sink.ts'
import { childTask } from '../task/child-task.ts'
import type { Sha256 } from '../task/digest.ts'
import { type Definitions, definitionFor, type RunningAttempt } from './running-attempt.ts'

export interface ChildTasksHost {
  readonly registry: Definitions
  readonly clock: Clock
  readonly sink: EventSink
  readonly enqueue: (task: NewTask) => Promise<Enqueued>
  readonly sha256: Sha256
}

export class ChildTasks {
  readonly #parent: RunningAttempt
  readonly #host: ChildTasksHost
  readonly #ids = new Set<TaskId>()

  constructor(parent: RunningAttempt, host: ChildTasksHost) {
    this.#parent = parent
    this.#host = host
  }

  /** Works like `TaskContext.enqueue`, but takes the name of the child's definition. */
  async enqueue(name: string, input: unknown, options: ChildOptions): Promise<Enqueued> {
    const { registry, clock, enqueue, sink, sha256 } = this.#host
    const definition = definitionFor('enqueue', this.#parent, registry, name)
    const definitions = {
      get: (followUp: string) => definitionFor('enqueue the follow-up', this.#parent, registry, followUp),
    }
    const child = childTask(this.#parent, definition, input, options, clock.now(), sha256, definitions)
    if (this.#ids.has(child.id)) {
      throw new BullpenError(
        'duplicate_child_key',
        `${this.#parent.id} has already enqueued ${name} with the childKey ${JSON.stringify(options.childKey ?? '')}; give each child a different childKey`,
      )
    }
    this.#ids.add(child.id)
    let enqueued: Enqueued
    try {
      enqueued = await enqueue(child)
    } catch (error) {
      // The handler may try again with the same id. If this call has stored the child, the next call returns the same action.
      this.#ids.delete(child.id)
      throw error
    }
    // A child that an earlier attempt stored is not counted again.
    if (isStored(enqueued.action)) {
      sink({ event: 'task.enqueued', queue: child.queue, task: child.task, id: child.id })
    }
    return enqueued
  }
}
