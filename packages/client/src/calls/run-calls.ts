// Implements the client's methods for pipelines, on any transport.
import type {
  FleetPipelineDefinition,
  RunErrors,
  RunSettingsOptions,
  RunView,
  StartRunRequest,
} from '@bullpen/contract'
import { createRunId, ID_RANDOM_BYTES, type RunTransport } from '@bullpen/contract/internal'
import { assertText } from '../arguments.ts'
import type { Repeat } from '../repetition.ts'
import { RunEndedError, type RunHandle } from '../run-handle.ts'
import type { Abortable, WaitOptions } from '../task-handle.ts'
import { pollUntilEnded } from './long-poll.ts'

export interface StartPipelineOptions extends RunSettingsOptions, Abortable {
  /** Who starts the pipeline. */
  readonly by?: string
}

export interface RunCalls {
  /**
   * Starts a pipeline, which must be in the catalogue of the API. If the client repeats the
   * call after an error, the pipeline still starts only once.
   *
   * @example
   * const run = await client.startPipeline(digestTree, { directory: '/srv' })
   * const digests = await run.output({ timeout: '10m' })
   */
  startPipeline<Input, Output>(
    pipeline: FleetPipelineDefinition<Input, Output>,
    input: Input,
    options?: StartPipelineOptions,
  ): Promise<RunHandle<Output>>
  /**
   * Starts a pipeline by its name, like {@link startPipeline}. The input must be JSON. With an id, the call is idempotent: it can be
   * repeated, even by another process, without starting the pipeline twice.
   *
   * @throws ProblemError `run_id_taken` if a run with this id was started with another pipeline, input, `totalTimeout` or `keep`.
   */
  startPipelineNamed(
    pipeline: string,
    input: unknown,
    options?: StartPipelineOptions & { readonly id?: string },
  ): Promise<RunHandle>
  /** Returns the handle of the run with this id, without a request. */
  run(id: string): RunHandle
}

export function runCalls(runs: RunTransport, repeat: Repeat): RunCalls {
  function waitUntilEnded(id: string, options: WaitOptions): Promise<RunView> {
    const poll = (waitMs: number) => runs.show(id, waitMs)
    return pollUntilEnded('run', id, { repeat, poll, isOver: ({ state }) => state === 'ended' }, options)
  }

  async function* errors(id: string, { signal }: Abortable) {
    for (let next: number | undefined = 0; next !== undefined; ) {
      const page: RunErrors = await repeat('look-up', runs.errors(id, next), signal)
      yield* page.errors
      next = page.next
    }
  }

  function handleOf<Output>(id: string): RunHandle<Output> {
    return {
      id,
      describe: ({ signal } = {}) => repeat('look-up', runs.show(id, 0), signal),
      waitUntilEnded: (options = {}) => waitUntilEnded(id, options),
      async output(options = {}) {
        const run = await waitUntilEnded(id, options)
        if (run.result !== 'completed') throw new RunEndedError(run)
        // The API has stored what the pipeline's own last stage has returned.
        return run.output as Output
      },
      cancel: ({ by, signal } = {}) => repeat('idempotent', runs.cancel(id, by), signal),
      async delete({ by, signal } = {}) {
        await repeat('idempotent', runs.delete(id, by), signal)
      },
      errors: (options = {}) => errors(id, options),
    }
  }

  /** Returns the id of the run. */
  async function start(request: StartRunRequest, signal: AbortSignal | undefined): Promise<string> {
    const { id = createRunId(Date.now(), crypto.getRandomValues(new Uint8Array(ID_RANDOM_BYTES))) } = request
    return (await repeat('idempotent', runs.start({ ...request, id }), signal)).id
  }

  return {
    async startPipeline(pipeline, input, { signal, ...settings } = {}) {
      if (pipeline?.kind !== 'pipeline') {
        throw new TypeError('startPipeline: expected the result of definePipeline as the first argument')
      }
      return handleOf(await start({ ...settings, pipeline: pipeline.name, input }, signal))
    },
    async startPipelineNamed(pipeline, input, { signal, ...settings } = {}) {
      assertText('startPipelineNamed', 'the name of a pipeline', pipeline)
      return handleOf(await start({ ...settings, pipeline, input }, signal))
    },
    run(id) {
      assertText('run', 'the id of a run', id)
      return handleOf(id)
    },
  }
}
