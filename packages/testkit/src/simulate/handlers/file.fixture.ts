// Writes a report to a file. The faulty handler appends to the file.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { effect } from '../effect.ts'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const report = defineTask({ name: 'report.write', queue: 'reports', input: z.object({ lines: z.array(z.string()) }) })
const input = { lines: ['one', 'two'] }

const resources = () => {
  const files = new Map<string, string>()
  return {
    files: {
      append: effect(async (path: string, text: string) => void files.set(path, `${files.get(path) ?? ''}${text}`)),
      write: effect(async (path: string, text: string) => void files.set(path, text), { deduplicatedBy: 'arguments' }),
    },
  }
}

type Context = TaskContext<typeof report, ReturnType<typeof resources>>

const faulty = defineHandler(report, import.meta.url, async ({ input, resources: { files }, progress }: Context) => {
  for (const [done, line] of input.lines.entries()) {
    await files.append('report.txt', `${line}\n`)
    await progress((done + 1) / input.lines.length)
  }
})

const idempotent = defineHandler(report, import.meta.url, async ({ input, resources: { files } }: Context) => {
  await files.write('report.txt', input.lines.map((line) => `${line}\n`).join(''))
})

export const fileFault: PlantedFault = {
  name: 'a file that is appended to',
  faulty: () => simulate(faulty, input, { resources }),
  idempotent: (options) => simulate(idempotent, input, { resources, ...options }),
  faults: ['one', 'two'].map((line) => ({
    kind: 'repeated',
    effect: `files.append("report.txt", "${line}\\n")`,
    foundBy: ['crash', 'timeout', 'lock_lost'],
  })),
}
