// What a pool and its isolates say to each other. An isolate has one task at a time; `of` says which one is meant.
import type { ChildOptions, Log, Progress } from '@bullpen/contract'
import type { IsolatedTask } from '@bullpen/engine/internal'
import type { PortableError } from './portable-error.ts'
import type { PortableFields } from './portable-fields.ts'
import type { PortableOutcome } from './portable-outcome.ts'

/** One start of a task, in the words that log lines use. */
export type StartOf = Pick<IsolatedTask, 'id' | 'task' | 'fencingToken' | 'attempt'>

export type ToIsolate =
  /** The first: opens the resources of this module. */
  | { readonly kind: 'open'; readonly resources: string | undefined; readonly reportMemory: boolean }
  /** `aborted`: the signal came before the task did. */
  | { readonly kind: 'run'; readonly task: IsolatedTask; readonly aborted: PortableError | undefined }
  | { readonly kind: 'signal'; readonly reason: PortableError }
  /** Answers a call, by its number. */
  | {
      readonly kind: 'answer'
      readonly call: number
      readonly value: unknown
      readonly error: PortableError | undefined
    }
  /** Closes the resources and ends the isolate. */
  | { readonly kind: 'end' }

export type FromIsolate =
  /** The resources are open: tasks may come. */
  | { readonly kind: 'ready' }
  /** They are not, and the isolate ends. */
  | { readonly kind: 'unable'; readonly error: PortableError }
  /** The handler's module is imported, and has made resident memory grow so much; said once for each module. */
  | { readonly kind: 'imported'; readonly residentBytes: number }
  | { readonly kind: 'heartbeat'; readonly of: StartOf }
  | { readonly kind: 'progress'; readonly of: StartOf; readonly call: number; readonly progress: Progress }
  | {
      readonly kind: 'enqueue'
      readonly of: StartOf
      readonly call: number
      readonly task: string
      readonly input: unknown
      readonly options: ChildOptions | undefined
    }
  | { readonly kind: 'findStep'; readonly of: StartOf; readonly call: number; readonly step: string }
  | {
      readonly kind: 'keepStep'
      readonly of: StartOf
      readonly call: number
      readonly step: string
      readonly result: string
    }
  | {
      readonly kind: 'log'
      /** Undefined: it is the isolate's own. */
      readonly of: StartOf | undefined
      readonly level: keyof Log
      readonly fields: PortableFields
      readonly message: string
    }
  /** `broken`: the module could not be imported, and an isolate remembers such a failure for ever. */
  | { readonly kind: 'outcome'; readonly of: StartOf; readonly outcome: PortableOutcome; readonly broken: boolean }
  /** An error that belongs to no running task: to the one that it names, which is over, or to nobody known. */
  | { readonly kind: 'late'; readonly of: StartOf | undefined; readonly error: PortableError }
  /** Where the parent can't look it up: this isolate's resident memory, in bytes. */
  | { readonly kind: 'memory'; readonly residentBytes: number }

export function isSameStart(one: StartOf, other: StartOf): boolean {
  return one.id === other.id && one.fencingToken === other.fencingToken
}
