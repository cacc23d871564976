// drill NAME|all [--seed N] [--scale small|full] [--json]: runs one drill, or all, and exits with 1 when one missed its target.
import { parseArgs } from 'node:util'
import { DRILLS } from './drills.ts'
import { asJson, asText, type Scale } from './report.ts'

const USAGE = `usage: drill NAME|all [--seed N] [--scale small|full] [--json]\nNAME is one of ${Object.keys(DRILLS).join(', ')}`

interface Order {
  readonly names: readonly string[]
  readonly seed: number
  readonly scale: Scale
  readonly json: boolean
}

/** Undefined for what is no order. */
function readOrder(args: readonly string[]): Order | undefined {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        seed: { type: 'string', default: '1' },
        scale: { type: 'string', default: 'small' },
        json: { type: 'boolean', default: false },
      },
    })
    const [name = '', ...others] = positionals
    const names = name === 'all' ? Object.keys(DRILLS) : [name]
    const { scale, json } = values
    if (others.length > 0 || !names.every((known) => Object.hasOwn(DRILLS, known))) return undefined
    if (!/^\d{1,9}$/.test(values.seed) || (scale !== 'small' && scale !== 'full')) return undefined
    return { names, seed: Number(values.seed), scale, json }
  } catch {
    return undefined
  }
}

const order = readOrder(process.argv.slice(2))
if (order === undefined) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  for (const name of order.names) {
    const report = await DRILLS[name]?.(order.scale, order.seed)
    if (report === undefined) continue
    console.log(order.json ? asJson(report) : asText(report))
    if (!report.ok) process.exitCode = 1
  }
}
