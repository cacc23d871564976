// drill NAME|all [--seed N] [--scale small|full] [--peer] [--json]: runs one drill, or all; 1 when one missed its target.
import { parseArgs } from 'node:util'
import { type Drill, type Order, perform } from './drill.ts'
import { APART, DRILLS } from './drills.ts'
import { asJson, asText } from './report.ts'

const USAGE = `usage: drill NAME|all [--seed N] [--scale small|full] [--peer] [--json]\nNAME is one of ${[...DRILLS.keys()].join(', ')}; or, with a Docker engine, ${[...APART.keys()].join(', ')}`

interface Command extends Order {
  readonly drills: readonly Drill[]
  readonly json: boolean
}

/** Undefined for what is no command. */
function readCommand(args: readonly string[]): Command | undefined {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        seed: { type: 'string', default: '1' },
        scale: { type: 'string', default: 'small' },
        peer: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
      },
    })
    const [name = '', ...others] = positionals
    const named = DRILLS.get(name) ?? APART.get(name)
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
if (command === undefined) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  for (const drill of command.drills) {
    const report = await perform(drill, command)
    console.log(command.json ? asJson(report) : asText(report))
    if (!report.ok) process.exitCode = 1
  }
}
