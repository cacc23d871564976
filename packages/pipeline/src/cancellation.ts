// Cancels a run when a signal aborts.
import { PipelineError } from '@bullpen/contract'
import type { RunState } from './run.ts'

/** Cancels the run at once if the signal has aborted before. Disposing of what it returns removes the listener. */
export function cancelOnAbort(signal: AbortSignal | undefined, run: RunState): Disposable {
  const cancel = (): void =>
    run.fail(new PipelineError('pipeline_cancelled', signal?.reason, { pipeline: run.pipeline }))
  if (signal?.aborted) cancel()
  else signal?.addEventListener('abort', cancel, { once: true })
  return { [Symbol.dispose]: () => signal?.removeEventListener('abort', cancel) }
}
