// The messages between a worker and its isolates. An isolate has one attempt at a time; `of` names the attempt, since messages
// of an earlier one may still arrive.
import type { ChildOptions, Log, Progress } from '@bullpen/contract'
import type { IsolatedTask } from '@bullpen/engine/internal'
import type { PortableError } from './portable-error.ts'
import type { PortableFields } from './portable-fields.ts'
import type { PortableOutcome } from './portable-outcome.ts'

/** Names one attempt, with the fields that log lines use. */
export type AttemptRef = Pick<IsolatedTask, 'id' | 'task' | 'fencingToken' | 'attempt'>

export type ToIsolate =
  /** The first message: opens the resources of this module. */
  | { readonly kind: 'open'; readonly resources: string | undefined; readonly reportMemory: boolean }
  /** `aborted`: the reason of a signal that came before the attempt. */
  | { readonly kind: 'run'; readonly task: IsolatedTask; readonly aborted: PortableError | undefined }
  | { readonly kind: 'signal'; readonly reason: PortableError }
  /** Answers the call with this number. */
  | {
      readonly kind: 'answer'
      readonly call: number
      readonly value: unknown
      readonly error: PortableError | undefined
    }
  /** Close the resources, then end. */
  | { readonly kind: 'end' }

export type FromIsolate =
  /** The resources are open: the isolate accepts attempts. */
  | { readonly kind: 'ready' }
  /** A resource failed to open. */
  | { readonly kind: 'open_failed'; readonly error: PortableError }
  /** A handler's module has been imported, for the first time, and resident memory grew by this much. */
  | { readonly kind: 'imported'; readonly residentBytes: number }
  | { readonly kind: 'heartbeat'; readonly of: AttemptRef }
  | { readonly kind: 'progress'; readonly of: AttemptRef; readonly call: number; readonly progress: Progress }
  | {
      readonly kind: 'enqueue'
      readonly of: AttemptRef
      readonly call: number
      readonly task: string
      readonly input: unknown
      readonly options: ChildOptions | undefined
    }
  | { readonly kind: 'findStep'; readonly of: AttemptRef; readonly call: number; readonly step: string }
  | {
      readonly kind: 'storeStep'
      readonly of: AttemptRef
      readonly call: number
      readonly step: string
      readonly result: string
    }
  | {
      readonly kind: 'log'
      /** Undefined: the line is the isolate's own. */
      readonly of: AttemptRef | undefined
      readonly level: keyof Log
      readonly fields: PortableFields
      readonly message: string
    }
  /** `broken`: the module could not be imported. Node caches the failure for the life of the isolate. */
  | { readonly kind: 'outcome'; readonly of: AttemptRef; readonly outcome: PortableOutcome; readonly broken: boolean }
  /** An uncaught error of an attempt that is over, or of none that is known. */
  | { readonly kind: 'late'; readonly of: AttemptRef | undefined; readonly error: PortableError }
  /** The isolate's resident memory in bytes, where the worker can't read it. */
  | { readonly kind: 'memory'; readonly residentBytes: number }

export function isSameAttempt(one: AttemptRef, other: AttemptRef): boolean {
  return one.id === other.id && one.fencingToken === other.fencingToken
}
