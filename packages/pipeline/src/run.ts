// Keeps the state of one run: the calls that have not returned, the errors, and how the run ends.
import { type PipelineDefinition, PipelineError, type StageContext } from '@bullpen/contract'
import type { Position, Upstream } from './nodes/node.ts'

/** A run ends when its last stage has ended, or when it has failed or was stopped, but not before all calls have returned. */
export interface Run {
  readonly pipeline: string
  /** Announces a call that the run waits for: that of a function, or of an iterator. */
  begin(): void
  /** The call has returned, and everything that follows from it has been done. */
  end(): void
  /** A function has thrown for an item. Depending on the pipeline, the run fails, or the error is collected. */
  failItem(stage: string, position: Position, cause: unknown): void
  /** Fails the run with the error of a function. */
  failStage(stage: string, position: Position | undefined, cause: unknown): void
  /** Fails the run, unless it has failed before. Aborts all signals and stops all stages. */
  fail(error: PipelineError): void
}

export interface RunState extends Run {
  /** Resolves when the run has ended. Never rejects. */
  readonly settled: Promise<void>
  readonly errors: readonly PipelineError[]
  /** Returns how many items have failed in a run that collects errors. */
  errorCount(): number
  /** Returns the error of a run that has failed. */
  failure(): PipelineError | undefined
  /** Creates what the functions of a stage receive. `scope` is the number of `take` stages after it. */
  context(stage: string, scope?: number): StageContext
  /** Aborts the signals of all stages that have at least `scope` `take` stages after them. */
  abort(scope: number): void
  /** Sets the last stage, which stops all others. */
  attach(last: Upstream): void
  /** Aborts all signals and stops all stages. */
  stop(): void
  /** The last stage has ended. */
  complete(): void
}

export function createRun({ name, onError, maxErrors }: PipelineDefinition): RunState {
  const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
  /** By scope. */
  const controllers: AbortController[] = []
  const errors: PipelineError[] = []
  let errorCount = 0
  let failure: PipelineError | undefined
  let last: Upstream | undefined
  let open = 0
  let over = false

  const signalOf = (scope: number): AbortSignal => {
    const controller = controllers[scope]
    if (controller !== undefined) return controller.signal
    controllers.push(new AbortController())
    return signalOf(scope)
  }
  const settleIfOver = (): void => {
    if (over && open === 0) settle()
  }
  const stop = (reason?: PipelineError): void => {
    over = true
    open++
    for (const controller of controllers) controller.abort(reason)
    last?.stop()
    open--
    settleIfOver()
  }
  const fail = (error: PipelineError): void => {
    if (failure !== undefined) return
    failure = error
    stop(error)
  }
  const itemError = (stage: string, position: Position | undefined, cause: unknown): PipelineError => {
    const place = { pipeline: name, stage, position: position === undefined ? undefined : String(position) }
    return new PipelineError('stage_failed', cause, place)
  }

  return {
    pipeline: name,
    settled,
    errors,
    errorCount: () => errorCount,
    failure: () => failure,
    context: (stage, scope = 0) => Object.freeze({ signal: signalOf(scope), stage }),
    abort(scope) {
      for (const controller of controllers.slice(scope)) controller.abort()
    },
    attach(lastStage) {
      last = lastStage
    },
    begin() {
      open++
    },
    end() {
      open--
      settleIfOver()
    },
    failItem(stage, position, cause) {
      if (onError === 'cancel') return fail(itemError(stage, position, cause))
      errorCount++
      if (errors.length < maxErrors) errors.push(itemError(stage, position, cause))
    },
    failStage: (stage, position, cause) => fail(itemError(stage, position, cause)),
    fail,
    stop: () => stop(),
    complete() {
      over = true
      settleIfOver()
    },
  }
}
