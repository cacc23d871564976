// Fuzzes with several seeds on a server of its own, and fails with a short program if a step leaves something wrong.
import { privateRedis } from '@bullpen/testing'
import { Redis } from 'ioredis'
import { expect, onTestFinished } from 'vitest'
import type { Step } from '../turns/random-steps.fixture.ts'
import { programsFor, runProgram, shortened } from './fuzz.fixture.ts'
import { type SentScripts, watchScripts } from './sent-scripts.fixture.ts'

const SHORTEN_MS = 60_000
/** A seed with at least this many steps reports how long it took. */
const LONG = 10_000

const shown = (program: readonly Step[]): string =>
  program.map(({ name, pick, n }) => `${name} (${pick}, ${n})`).join('\n  ')

interface FuzzOptions {
  readonly seeds: readonly number[]
  readonly steps: number
  /** Changes the programs of each seed. */
  readonly adapt?: (program: readonly Step[]) => readonly Step[]
}

/** Returns which scripts were sent by which operations. */
export async function fuzz({
  seeds,
  steps,
  adapt = (program) => program,
}: FuzzOptions): Promise<SentScripts['senders']> {
  const server = await privateRedis()
  await server.start()
  const redis = new Redis(server.url)
  const sent = watchScripts()
  onTestFinished(() => {
    sent.close()
    redis.disconnect()
  })
  const run = async (program: readonly Step[]) => {
    await redis.flushall()
    return runProgram(server.url, program, sent)
  }
  for (const seed of seeds) {
    const startedAt = performance.now()
    for (const [number, drawn] of programsFor(seed, steps).entries()) {
      const program = adapt(drawn)
      const failure = await run(program)
      if (failure === undefined) continue
      const { at, found } = failure
      const about = `seed ${seed}, program ${number}, after step ${at} (${program[at]?.name ?? 'the end'}): ${found.join('; ')}`
      console.log(`${about}\nlooking for a shorter program for at most ${SHORTEN_MS / 1_000} s`)
      const fails = async (each: readonly Step[]): Promise<boolean> => (await run(each)) !== undefined
      const shortest = await shortened(program.slice(0, at + 1), fails, SHORTEN_MS)
      expect.fail(
        `${about}\nset SEED=${seed} STEPS=${steps} to run it again. This program fails, too:\n  ${shown(shortest)}`,
      )
    }
    const seconds = (performance.now() - startedAt) / 1_000
    if (steps >= LONG) console.log(`seed ${seed}: ${steps} steps in ${seconds.toFixed(1)} s`)
  }
  return sent.senders
}
