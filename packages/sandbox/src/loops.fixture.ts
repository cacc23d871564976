// Isolated tasks for the engine's runner: some loop forever, some die after their first step.
import { defineCatalogue, defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'

const limits = { queue: 'q', timeout: '1s', grace: '100ms', input: z.object({}), output: z.object({}) } as const
const steps = { queue: 'q', input: z.object({}), output: z.object({ paid: z.int(), key: z.string() }) } as const
const inThread = defineTask({ ...limits, name: 'loop.thread', isolation: 'thread' })
const inProcess = defineTask({ ...limits, name: 'loop.process', isolation: 'process', memoryLimit: '64MiB' })

const stepsInThread = defineTask({
  ...steps,
  name: 'steps.thread',
  isolation: 'thread',
  onSuccess: (followUp) => [followUp(inThread, () => ({}), { when: ({ output }) => output.paid === 1 })],
})
const stepsInProcess = defineTask({
  ...steps,
  name: 'steps.process',
  isolation: 'process',
  onSuccess: (followUp) => [followUp(inProcess, () => ({}), { when: ({ output }) => output.paid === 1 })],
})

export const catalogue = defineCatalogue(inThread, inProcess, stepsInThread, stepsInProcess)

const loopForever = (): never => {
  while (true) {}
}
// Every handler is exported, because an isolate searches a module's exports for its task's handler.
export const threadLoop = defineHandler(inThread, import.meta.url, loopForever)
export const processLoop = defineHandler(inProcess, import.meta.url, loopForever)

const dying = async ({ once, fencingToken }: TaskContext): Promise<{ paid: number; key: string }> => {
  const paid = await once('pay', (key) => ({ paid: fencingToken, key }))
  if (fencingToken === 1) process.exit(7)
  return paid
}
export const threadSteps = defineHandler(stepsInThread, import.meta.url, dying)
export const processSteps = defineHandler(stepsInProcess, import.meta.url, dying)

export const handlers = {
  'loop.thread': threadLoop,
  'loop.process': processLoop,
  'steps.thread': threadSteps,
  'steps.process': processSteps,
}
