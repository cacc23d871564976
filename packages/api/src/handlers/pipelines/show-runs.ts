// GET /v1/runs lists the runs of pipelines that have not ended. GET /v1/runs/{id} shows one or waits for its end, and
// GET /v1/runs/{id}/errors shows the errors that it has collected.
import type { RunErrors, RunList, RunView } from '@bullpen/contract'
import { type groupsQuerySchema, type runErrorsQuerySchema, runId } from '@bullpen/contract/internal'
import { detailedRunView, runErrors, runNotFound, runView } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import type { z } from 'zod'
import { abortOnFirst } from '../../http/abort-on-first.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'
import { secondsToWait, type WaitQuery } from '../../http/wait.ts'

export interface RunParams {
  readonly id: string
}

export function listRuns({ broker }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof groupsQuerySchema>>): Promise<RunList> => ({
    runs: (await broker.runs.list(query.limit)).map((run) => runView(run, undefined, sha256)),
  })
}

export function showRun({ broker, closing }: ApiContext) {
  return async ({ params, query, request, reply }: Call<RunParams, WaitQuery>): Promise<RunView> => {
    const id = runId(params.id)
    const seconds = secondsToWait(query, request, reply)
    const run =
      seconds === 0
        ? await broker.runs.find(id)
        : await abortOnFirst(seconds * 1_000, closing, reply.raw, (signal) => broker.runs.waitUntilEnded(id, signal))
    if (run === undefined) throw runNotFound(id)
    const output = run.ended?.result === 'completed' ? await broker.runs.output(id) : undefined
    return detailedRunView(run, output, broker.find, sha256)
  }
}

export function showRunErrors({ broker }: ApiContext) {
  return async ({ params, query }: Call<RunParams, z.output<typeof runErrorsQuerySchema>>): Promise<RunErrors> => {
    const id = runId(params.id)
    const run = await broker.runs.find(id)
    if (run === undefined) throw runNotFound(id)
    const errors = await broker.runs.errors(id, query.from, query.limit)
    return runErrors(run, errors, query, broker.find, sha256)
  }
}
