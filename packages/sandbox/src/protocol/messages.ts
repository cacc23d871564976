// Defines the messages between a worker and its isolates. An isolate has one attempt at a time. `of` identifies the attempt,
// because messages from an earlier attempt may still arrive.
import type { Log, Progress } from '@bullpen/contract'
import type { IsolatedTask, PortableError, PortableFields, RegisteredKind } from '@bullpen/engine/isolate'
import type { PortableOutcome } from './portable-outcome.ts'

/** Identifies one attempt, with the fields that log lines use. */
export type AttemptRef = Pick<IsolatedTask, 'id' | 'task' | 'fencingToken' | 'attempt'>

export type ToIsolate =
  /** The first message, which opens the resources of this module. The isolate sends the key with each of its messages. */
  | {
      readonly kind: 'open'
      readonly key: string
      readonly resources: string | undefined
      readonly reportMemory: boolean
    }
  /** Runs an attempt. `aborted` is the reason of a signal that was sent before the attempt started. */
  | { readonly kind: 'run'; readonly task: IsolatedTask; readonly aborted: PortableError | undefined }
  | { readonly kind: 'signal'; readonly reason: PortableError }
  /** Responds to the call that has this number. */
  | {
      readonly kind: 'answer'
      readonly call: number
      readonly value: unknown
      readonly error: PortableError | undefined
    }
  /** Closes the resources and then ends the isolate. */
  | { readonly kind: 'end' }

export type FromIsolate =
  /** The resources are open, and the isolate accepts attempts. */
  | { readonly kind: 'ready' }
  /** A resource failed to open. */
  | { readonly kind: 'open_failed'; readonly error: PortableError }
  /** A handler's module has been imported for the first time. `residentBytes` is the growth of resident memory. */
  | { readonly kind: 'imported'; readonly residentBytes: number }
  | { readonly kind: 'heartbeat'; readonly of: AttemptRef }
  | { readonly kind: 'progress'; readonly of: AttemptRef; readonly call: number; readonly progress: Progress }
  | {
      readonly kind: 'enqueue'
      readonly of: AttemptRef
      readonly call: number
      readonly task: string
      /** The input and the options as JSON. */
      readonly values: string
    }
  | {
      readonly kind: 'onSuccess'
      readonly of: AttemptRef
      readonly task: string
      readonly values: string
    }
  | {
      readonly kind: 'register'
      readonly of: AttemptRef
      readonly call: number
      /** When the registered task is enqueued. */
      readonly on: RegisteredKind
      readonly task: string
      readonly values: string
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
      /** Undefined if the log line is the isolate's own. */
      readonly of: AttemptRef | undefined
      readonly level: keyof Log
      readonly fields: PortableFields
      readonly message: string
    }
  /** `broken` means that the module could not be imported. Node caches this failure for the lifetime of the isolate. */
  | {
      readonly kind: 'outcome'
      readonly of: AttemptRef
      readonly outcome: PortableOutcome
      readonly broken: boolean
      /** What the attempt has changed in the isolate that would change what later tasks do. */
      readonly touched: string | undefined
    }
  /** An uncaught error from an attempt that is over, or an error that does not belong to a known attempt. */
  | { readonly kind: 'late'; readonly of: AttemptRef | undefined; readonly error: PortableError }
  /** The isolate's resident memory in bytes. It is sent on platforms where the worker can't read it. */
  | { readonly kind: 'memory'; readonly residentBytes: number }

export function isSameAttempt(one: AttemptRef, other: AttemptRef): boolean {
  return one.id === other.id && one.fencingToken === other.fencingToken
}
