// Defines the progress of a request for dead tasks by filter, as scripts return it.

/** How long the progress of a request that is done is kept, in ms. Commands to the fleet are kept for the same time. */
export const KEEP_PROGRESS_MS = 604_800_000

export interface StoredProgress {
  /** The request as JSON. */
  readonly request: string
  readonly changed: string
  /** Undefined while there may be matching tasks left. */
  readonly doneAt: string | undefined
  /** Undefined unless the request was stopped. */
  readonly stoppedBy: string | undefined
}

/** Parses a script's list of the fields, in which '' stands for a missing time and a missing name. */
export function parseProgress(reply: unknown): StoredProgress {
  const [request, changed, doneAt, stoppedBy] = reply as [string, string, string, string]
  return { request, changed, doneAt: doneAt || undefined, stoppedBy: stoppedBy || undefined }
}
