// Random pipelines, whose functions return in a random order, behave as if the items were processed one after the other.
import { PipelineError } from '@bullpen/contract'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { expectedOf, type Program, programs } from './programs.fixture.ts'
import { pipelineOf } from './recorded-pipeline.fixture.ts'
import { runPipeline } from './run-pipeline.ts'

type Outcome = { readonly output: unknown; readonly errors: readonly PipelineError[] } | PipelineError

async function outcomeOf(program: Program, scheduler: fc.Scheduler) {
  const { pipeline, recorded } = pipelineOf(program, () => scheduler.schedule(Promise.resolve()))
  const controller = new AbortController()
  if (program.aborts) {
    void scheduler.schedule(Promise.resolve()).then(() => {
      controller.abort('enough')
      recorded.over = true
    })
  }
  const run = runPipeline(pipeline, undefined, { signal: controller.signal }).then(
    (result): Outcome => (program.onError === 'collect' ? (result as Outcome) : { output: result, errors: [] }),
    (error): Outcome => {
      if (error instanceof PipelineError) return error
      throw error
    },
  )
  const outcome = await scheduler.waitFor(run)
  const ended = { ...recorded, aborted: controller.signal.aborted }
  await scheduler.waitIdle()
  return { outcome, recorded: ended, callsLater: recorded.calls - ended.calls }
}

/** Returns the stage, but a `take` that takes all items. */
const withoutLimit = (stage: Program['stages'][number]): Program['stages'][number] =>
  stage.kind === 'take' ? { ...stage, count: Number.POSITIVE_INFINITY } : stage

const sorted = (values: Iterable<unknown>): readonly string[] =>
  Array.from(values, (each) => JSON.stringify(each)).sort()
const isWithin = (part: readonly string[], whole: readonly string[]): boolean => {
  const left = [...whole]
  return part.every((each) => left.includes(each) && left.splice(left.indexOf(each), 1).length === 1)
}

test('a random pipeline returns what the model returns, keeps its bounds, and leaves no call behind', async () => {
  await fc.assert(
    fc.asyncProperty(programs, fc.scheduler(), async (program, scheduler) => {
      const { outcome, recorded, callsLater } = await outcomeOf(program, scheduler)
      expect(recorded).toMatchObject({ running: 0, sourceIsOpen: false, fault: undefined })
      expect(callsLater).toBe(0)

      const hasTake = program.stages.some(({ kind }) => kind === 'take')
      const serial = expectedOf(program, program.onError === 'cancel')
      const whole = expectedOf({ ...program, stages: program.stages.map(withoutLimit) }, false)

      if (!(outcome instanceof PipelineError)) {
        if (program.onError === 'cancel' && program.ordered) expect(serial.thrown).toEqual([])
        if (program.ordered) expect(outcome.output).toEqual(serial.outputs)
        else if (!hasTake) expect(sorted(outcome.output as [])).toEqual(sorted(whole.outputs))
        else expect(isWithin(sorted(outcome.output as []), sorted(whole.outputs))).toBe(true)
        const causes = outcome.errors.map(({ cause }) => cause)
        if (hasTake) expect(isWithin(sorted(causes), sorted(recorded.thrown))).toBe(true)
        else expect(sorted(causes)).toEqual(sorted(serial.thrown))
        if (!hasTake) expect(program.sourceFails).toBe(false)
      } else if (outcome.code === 'stage_failed') {
        expect(program.onError).toBe('cancel')
        if (hasTake) expect(recorded.thrown).toContain(outcome.cause)
        else expect(outcome.cause).toBe(recorded.thrown[0])
      } else if (outcome.code === 'source_failed') {
        expect(program.sourceFails).toBe(true)
        if (program.onError === 'cancel' && !hasTake) expect(whole.thrown).toEqual([])
        if (program.ordered) expect(serial.sourceFailed).toBe(true)
      } else {
        expect(recorded.aborted).toBe(true)
        expect(outcome.cause).toBe('enough')
      }
    }),
    { numRuns: 1_000 },
  )
})
