// Creates the tasks of a pipeline run from the templates that are stored with the run.
//
// A task may get a reference to its value instead of the value (./kept-input.ts).
import type { RunId, TaskId } from '@bullpen/contract'
import {
  createTaskId,
  type Envelope,
  encodeLines,
  ID_RANDOM_BYTES,
  readRunId,
  type StoredTemplate,
  storedTemplateSchema,
} from '@bullpen/contract/internal'
import { z } from 'zod'
import { type ForwardedTask, templateTask } from '../follow-ups/template.ts'
import { memberTemplate } from '../groups/member-task.ts'
import type { NewRun, RunRef, RunSettings } from '../ports/broker/runs.ts'
import type { PayloadCodec } from '../ports/payload-codec.ts'
import { digestOf, type Sha256 } from '../task/digest.ts'
import { inputFields } from '../task/payload/value-text.ts'
import { referredBytes } from './kept-input.ts'

/** A task of a run: see ./run-state.ts. */
export interface RunTaskPlace {
  readonly run: RunRef
  readonly stage: number
  readonly position: number
}

/** Returns the run to which these tasks belong: see {@link runToken}. */
export function runOfToken(token: string): RunRef {
  const [unique = '', incarnation = ''] = token.slice(token.lastIndexOf('-') + 1).split('.')
  return { id: `run-${unique}` as RunId, incarnation }
}

/** What is stored of a run's settings and of its tasks, as JSON. */
export interface StoredRunDefinition {
  readonly settings: RunSettings
  readonly templates: readonly StoredTemplate[]
}

export function storedRunDefinition({ settings, tasks }: NewRun, codec: PayloadCodec | undefined): string {
  const definition: StoredRunDefinition = { settings, templates: tasks.map((task) => memberTemplate(task, codec)) }
  return JSON.stringify(definition)
}

const definitionSchema = z.object({
  settings: z.object({ pipeline: z.string(), incarnation: z.string() }),
  templates: z.array(storedTemplateSchema),
})

/** What a process needs of a {@link StoredRunDefinition} to create the run's tasks and to report about the run. */
export interface RunTemplates {
  readonly incarnation: string
  /** The name of the pipeline's definition. */
  readonly pipeline: string
  /** The templates of the run's tasks, by stage. */
  readonly templates: readonly StoredTemplate[]
}

/** @throws Error if another version of Bullpen has stored the definition in another form. */
export function runTemplates(definition: string): RunTemplates {
  const { settings, templates } = definitionSchema.parse(JSON.parse(definition))
  return { ...settings, templates }
}

/** Returns the id under which the tasks of a run are cancelled together. The reduction is not cancelled with the other tasks. */
export function runToken({ id, incarnation }: RunRef, isReduction: boolean): string {
  return `${isReduction ? 'reduce' : 'run'}${id.slice(id.lastIndexOf('-'))}.${incarnation}`
}

/** Returns the id of the cancel rule that cancels these tasks of a run in a queue. */
export function runRuleId(token: string, queue: string, sha256: Sha256): TaskId {
  const createdAt = readRunId(runOfToken(token).id)?.createdAt ?? 0
  return createTaskId(queue, createdAt, idDigest(['run-cancel', token], sha256))
}

/** Returns the id of a task of a run. It contains the time from the run's id. */
export function runTaskId({ run, stage, position }: RunTaskPlace, queue: string, sha256: Sha256): TaskId {
  const { id, incarnation } = run
  const createdAt = readRunId(id)?.createdAt ?? 0
  return createTaskId(queue, createdAt, idDigest(['run-task', id, incarnation, `${stage}`, `${position}`], sha256))
}

/**
 * Returns a task of a run. `value` is the item's, or '' for the source and the reduction, whose template contains their input.
 * The task's timeouts start at `now`, in ms since 1970.
 */
export function runTask(
  place: RunTaskPlace,
  value: string,
  template: StoredTemplate,
  isReduction: boolean,
  now: number,
  sha256: Sha256,
): ForwardedTask {
  const { run, stage, position } = place
  const id = runTaskId(place, template.queue, sha256)
  const fields = `"run":${JSON.stringify({ id: runToken(run, isReduction), stage, position })},`
  return {
    task: templateTask(template, id, now),
    data: withInput(template.data, value).replace(/^\{"v":\d+,/, (head) => head + fields),
    lines: encodeLines(template.followUps ?? []),
  }
}

/** Returns the envelope with the value as its input. The input comes last, so that scripts can find other fields without parsing it. */
function withInput(data: string, value: string): string {
  if (value === '') return data
  const bytes = referredBytes(value)
  return `${data.slice(0, -1)},${bytes === undefined ? inputFields(value) : `"keptInput":${bytes}`}}`
}

/** Returns the stored envelope of a task with the input that its run keeps. If the run has none, the envelope stays as it is. */
export function withKeptInput(envelope: unknown, value: string | undefined): unknown {
  if (value === undefined) return envelope
  const { keptInput: _, ...stored } = envelope as Envelope
  return { ...stored, ...JSON.parse(`{${inputFields(value)}}`) }
}

function idDigest(parts: readonly string[], sha256: Sha256): Uint8Array {
  return digestOf(parts, sha256).subarray(0, ID_RANDOM_BYTES)
}
