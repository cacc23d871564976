// The command line for the drills. It exits with 0 if every target was met, 1 if a target was missed, and 2 if the arguments were
// wrong.
import { parseArgs } from 'node:util'
import { repeatedOption } from '@bullpen/contract/internal'
import { type Drill, type DrillOptions, runDrill } from './drill.ts'
import { DOCKER_DRILLS, DRILLS } from './drills.ts'
import { asJson, asText } from './report.ts'

const USAGE = `usage: drill NAME|all [--seed N] [--scale small|full] [--peer] [--json]

Run a drill: real workers under load, one kind of fault, and figures judged by a target. The exit code is 1 if a target is missed.

  NAME           ${[...DRILLS.keys()].join(', ')}; with a Docker engine also ${[...DOCKER_DRILLS.keys()].join(', ')}
  all            every drill that needs no Docker engine
  --seed N       repeat the random choices of an earlier run (default: 1)
  --scale SCALE  small: one to three minutes; full: the amounts of the targets (default: small)
  --peer         run plain BullMQ as well, where it can run the same scenario, and in fairness also groupmq
  --json         print one JSON object per drill`

interface Command extends DrillOptions {
  readonly drills: readonly Drill[]
  readonly json: boolean
}

const OPTIONS = {
  seed: { type: 'string', default: '1' },
  scale: { type: 'string', default: 'small' },
  peer: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
} as const

/** Returns undefined if the arguments are wrong, or what is wrong if the usage does not show it. */
function readCommand(args: readonly string[]): Command | string | undefined {
  try {
    const parsed = parseArgs({ args: [...args], allowPositionals: true, options: OPTIONS, tokens: true })
    const { values, positionals, tokens } = parsed
    const repeated = repeatedOption(tokens, OPTIONS)
    if (repeated !== undefined) return `drill: --${repeated} is specified twice\n`
    const [name = '', ...others] = positionals
    const named = DRILLS.get(name) ?? DOCKER_DRILLS.get(name)
    const drills = name === 'all' ? [...DRILLS.values()] : named === undefined ? [] : [named]
    const { seed, scale, peer, json } = values
    if (others.length > 0 || drills.length === 0) return undefined
    if (!/^\d{1,9}$/.test(seed) || (scale !== 'small' && scale !== 'full')) return undefined
    return { drills, seed: Number(seed), scale, peer, json }
  } catch {
    return undefined
  }
}

const command = readCommand(process.argv.slice(2))
if (command === undefined || typeof command === 'string') {
  console.error((command ?? '') + USAGE)
  process.exitCode = 2
} else {
  for (const drill of command.drills) {
    const report = await runDrill(drill, command)
    console.log(command.json ? asJson(report) : asText(report))
    if (!report.ok) process.exitCode = 1
  }
}
