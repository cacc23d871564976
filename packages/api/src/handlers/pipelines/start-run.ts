// POST /v1/runs starts a pipeline. POST /v1/runs/{id}/cancel cancels a run, and DELETE /v1/runs/{id} deletes one that has ended.
import type { Deleted, RunView, StartRunRequest } from '@bullpen/contract'
import { createRunId, ID_RANDOM_BYTES, newRunId, runId } from '@bullpen/contract/internal'
import { planRun, runView } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'
import { keepToRate } from '../enqueueing/enqueue-rate.ts'
import { originOf } from '../enqueueing/planned-task.ts'
import type { RunParams } from './show-runs.ts'

export function startRun(context: ApiContext) {
  const { catalogue, broker, log, now, randomBytes } = context
  return async ({ body, request, reply }: Call): Promise<RunView> => {
    const { pipeline, input, id: given, by: name, ...settings } = body as StartRunRequest
    const id = given === undefined ? createRunId(now(), randomBytes(ID_RANDOM_BYTES)) : newRunId(given)
    const by = requesterOf(request, name)
    const { correlationId, traceContext } = originOf(request)
    const definition = catalogue.pipeline(pipeline)
    const random = randomBytes(ID_RANDOM_BYTES)
    const plan = { ...settings, id, by, input, random, now: now(), correlationId, traceContext }
    const planned = planRun(definition, plan)
    // The tasks of the stages are enqueued by the source and by the stages, like those that handlers enqueue.
    const { source, reduction } = definition
    const named = reduction === undefined ? [source] : [source, reduction.task]
    await keepToRate(
      context,
      request,
      named.map(({ name: task, queue }) => ({ task, queue, tokens: 1 })),
    )
    const { run, isNew } = await broker.runs.start(planned)
    if (isNew) log.info({ run: id, pipeline, by, requestId: request.id }, 'pipeline started')
    const view = runView(run, undefined, sha256)
    reply.code(isNew ? 201 : 200).header('location', view.links.self)
    return view
  }
}

export function cancelRun({ broker, log }: ApiContext) {
  return async ({ params, body, request }: Call<RunParams>): Promise<RunView> => {
    // The body has been validated. It is undefined, null, or an object with an optional name.
    const { by: name } = (body ?? {}) as { readonly by?: string }
    const id = runId(params.id)
    const by = requesterOf(request, name)
    const run = await broker.runs.cancel(id, by)
    log.info({ run: id, by, requestId: request.id }, 'pipeline cancelled')
    return runView(run, undefined, sha256)
  }
}

export function deleteRun({ broker, log }: ApiContext) {
  return async ({
    params,
    query,
    request,
  }: Call<RunParams, { readonly by?: string | undefined }>): Promise<Deleted> => {
    const id = runId(params.id)
    await broker.runs.delete(id)
    log.info({ run: id, by: requesterOf(request, query.by), requestId: request.id }, 'run deleted')
    return { id }
  }
}
