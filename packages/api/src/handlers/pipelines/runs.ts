// POST /v1/runs starts a pipeline, and GET /v1/runs lists the runs that have not ended. GET /v1/runs/{id} shows a run or waits for its end,
// and GET /v1/runs/{id}/errors shows the errors that it has collected. POST /v1/runs/{id}/cancel cancels a run, and DELETE /v1/runs/{id}
// deletes one that has ended.
import type { Deleted, RunErrors, RunList, RunView, StartRunRequest } from '@bullpen/contract'
import {
  createRunId,
  type groupsQuerySchema,
  ID_RANDOM_BYTES,
  newRunId,
  type runErrorsQuerySchema,
  runId,
} from '@bullpen/contract/internal'
import { detailedRunView, planRun, runErrors, runNotFound, runView } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import type { z } from 'zod'
import { requesterIn, requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call, ChangeQuery, IdCall, QueryCall } from '../../http/routes/route.ts'
import { findOrWait, type WaitQuery } from '../../http/wait.ts'
import { keepToRate } from '../enqueueing/enqueue-rate.ts'
import { originOf } from '../enqueueing/planned-task.ts'

export async function startRun(context: ApiContext, { body, request, reply }: Call): Promise<RunView> {
  const { catalogue, broker, log, now, randomBytes } = context
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
  const implied = named.map(({ name: task, queue }) => ({ task, queue }))
  const isRepeat = async () => given !== undefined && (await broker.runs.find(id)) !== undefined
  const { run, isNew } = await keepToRate(context, request, { implied, isRepeat }, async (charge) => {
    const started = await broker.runs.start(planned)
    if (started.isNew) charge.keep(implied)
    return started
  })
  if (isNew) log.info({ run: id, pipeline, by, requestId: request.id }, 'pipeline started')
  const view = runView(run, undefined, sha256)
  reply.code(isNew ? 201 : 200).header('location', view.links.self)
  return view
}

export async function listRuns(
  { broker }: ApiContext,
  { query }: QueryCall<typeof groupsQuerySchema>,
): Promise<RunList> {
  return { runs: (await broker.runs.list(query.limit)).map((run) => runView(run, undefined, sha256)) }
}

export async function showRun({ broker, closing }: ApiContext, call: IdCall<WaitQuery>): Promise<RunView> {
  const id = runId(call.params.id)
  const run = await findOrWait(
    call,
    closing,
    () => broker.runs.find(id),
    (signal) => broker.runs.waitUntilEnded(id, signal),
  )
  if (run === undefined) throw runNotFound(id)
  const output = run.ended?.result === 'completed' ? await broker.runs.output(id) : undefined
  return detailedRunView(run, output, broker.find, sha256)
}

export async function showRunErrors(
  { broker }: ApiContext,
  { params, query }: IdCall<z.output<typeof runErrorsQuerySchema>>,
): Promise<RunErrors> {
  const id = runId(params.id)
  const run = await broker.runs.find(id)
  if (run === undefined) throw runNotFound(id)
  const errors = await broker.runs.errors(id, query.from, query.limit)
  return runErrors(run, errors, query, broker.find, sha256)
}

export async function cancelRun({ broker, log }: ApiContext, call: IdCall): Promise<RunView> {
  const id = runId(call.params.id)
  const by = requesterIn(call)
  const run = await broker.runs.cancel(id, by)
  log.info({ run: id, by, requestId: call.request.id }, 'pipeline cancelled')
  return runView(run, undefined, sha256)
}

export async function deleteRun(
  { broker, log }: ApiContext,
  { params, query, request }: IdCall<ChangeQuery>,
): Promise<Deleted> {
  const id = runId(params.id)
  await broker.runs.delete(id)
  log.info({ run: id, by: requesterOf(request, query.by), requestId: request.id }, 'run deleted')
  return { id }
}
