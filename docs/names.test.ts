// Every command, script, drill, setting, metric and error code that a page names exists.
import {
  CANCEL_OUTCOMES,
  COMMIT_REFUSALS,
  DIAGNOSIS_CHECKS,
  DISCONNECT_REASONS,
  DRAIN_MODES,
  END_REASONS,
  ERRORS,
  ORPHAN_REASONS,
  WAIT_KINDS,
} from '@bullpen/contract/internal'
import { METRICS, PROCESS_METRICS, RECORDED_METRICS } from '@bullpen/telemetry'
import type { SimulationErrorCode, SimulationFault } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { BULLMQ_CHECKS } from '../packages/bullmq/src/examination/risk-table.ts'
import { COMMAND_NAMES, type CommandName } from '../packages/cli/src/commands/command-table.ts'
import { commandHelp, generalHelp } from '../packages/cli/src/help.ts'
import { DOCKER_DRILLS, DRILLS } from '../tools/drill/src/drills.ts'
import { currentPages, read } from './build/pages.ts'
import { referencePages } from './build/reference/reference-pages.ts'

const namesIn = (text: string): readonly string[] => text.match(/(?<=`)[a-z]+(?:_[a-z\d]+)+(?=`)/g) ?? []

/** Names in the form of an error code that are in none of the tables. */
const FOREIGN_NAMES = {
  card_declined: 'a failure that a handler declares',
  server_busy: 'a failure that a handler declares',
  customer_deleted: 'a failure that a handler declares',
  er_lock_deadlock: "MySQL's code",
  und_err_socket: "undici's code",
  mongo_network: "the default classifier's code for MongoDB",
  http_503: 'a code that the default classifier makes of a status',
  sqlstate_40001: 'a code that the default classifier makes of an SQLSTATE',
  used_memory: "a field of Redis's INFO",
  aof_delayed_fsync: "a field of Redis's INFO",
  stop_grace_period: 'a setting of Docker Compose',
  grafana_dashboard: 'a label of a config map',
  log_level: 'an action of a fleet command',
  rule_files: 'a setting of Prometheus',
  runbook_url: 'an annotation of alerts that notifications link',
  node_modules: 'a directory',
  worker_threads: 'a module of Node',
  retry_requested: 'the type of an event',
  unexpected_response: "a code of the client's errors",
  not_found: 'the outcome of a cancel in packages/testkit, where the API returns an error',
} as const

/** The metrics, the recorded series, and the names under which prometheus-adapter serves these to autoscalers. */
const PUBLISHED: ReadonlySet<string> = new Set([
  ...Object.entries(METRICS).flatMap(([name, row]) =>
    'buckets' in row ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  ),
  ...Object.keys(RECORDED_METRICS).flatMap((name) => [name, name.replace(':', '_')]),
])

const SETTINGS: ReadonlySet<string> = new Set(referencePages()['settings.md']?.match(/\bBULLPEN_[A-Z_]+\b/g))

/** The codes of the errors and the faults that a simulation finds. */
const SIMULATION_CODES = {
  not_idempotent: true,
  no_interruption: true,
  never_completes: true,
  no_effects: true,
  non_deterministic: true,
  too_many_runs: true,
  not_completed: true,
} as const satisfies Partial<Record<SimulationErrorCode | SimulationFault['kind'], true>>

/** Returns the parts of a page that are code: its code blocks, without the lines that are output, and its inline code. */
function codeOf(page: string): readonly string[] {
  const [prose, blocks] = [
    page.replaceAll(/```[\s\S]*?```/g, ''),
    page.match(/(?<=```(?:sh|bash|text)\n)[\s\S]*?(?=```)/g),
  ]
  return [...(blocks ?? []).flatMap((block) => block.split('\n')), ...(prose.match(/(?<=`)[^`\n]+(?=`)/g) ?? [])]
}

const flagsIn = (text: string): readonly string[] => text.match(/(?<=\s)--[a-z][a-z-]*/g) ?? []

/** Returns what is wrong with the first command of Bullpen's CLI in a line, or undefined if the line has none or it is valid. */
function mistakeIn(line: string): string | undefined {
  const [, name = '', rest = ''] = /(?:^|[|(&$] *|\bnpx (?:--no -- )?)bullpen ([a-z][a-z-]*)\b([^|]*)/.exec(line) ?? []
  if (name === '' || name === 'help') return undefined
  if (!(COMMAND_NAMES as readonly string[]).includes(name)) return `no command: ${line}`
  const known = flagsIn(commandHelp(name as CommandName) + generalHelp().split('examples:')[0])
  const unknown = flagsIn(rest).filter((flag) => !known.includes(flag))
  return unknown.length === 0 ? undefined : `${name} has no option ${unknown.join(', ')}`
}

describe('the test of commands', () => {
  it.each([
    ['npx bullpen drain --queue Q --wait 2m | jq --raw-output .id', undefined],
    ['bullpen retry ID', 'no command: bullpen retry ID'],
    ['bullpen stop W/cpu/3 --force', 'stop has no option --force'],
    ['Run the API and Bullpen itself', undefined],
    ['kubectl --namespace bullpen create secret', undefined],
    ['id=$(bullpen enqueue T --jsn)', 'enqueue has no option --jsn'],
  ])('finds the mistake in %j', (line, mistake) => {
    expect(mistakeIn(line)).toBe(mistake)
  })
})

// The reference of the command line is generated, and contains sentences about Bullpen.
it.each(currentPages.filter((file) => file !== 'docs/reference/cli.md'))(
  '%s names commands and options that exist',
  (file) => {
    expect(codeOf(read(file)).map(mistakeIn).filter(Boolean)).toEqual([])
  },
)

describe.each(currentPages)('%s', (file) => {
  const page = read(file)

  it('names npm scripts, drills and benchmarks that exist', () => {
    for (const [, script = '', workspace = '.'] of page.matchAll(/npm run ([\w:-]+)(?: --workspace ([\w/]+))?/g)) {
      expect(JSON.parse(read(`${workspace}/package.json`)).scripts, script).toHaveProperty([script])
    }
    const drills = [...page.matchAll(/npm run drill -- ([a-z]+)/g)].map(([, name = '']) => name)
    expect(drills.filter((name) => name !== 'all' && !DRILLS.has(name) && !DOCKER_DRILLS.has(name))).toEqual([])
  })

  it('names metrics and settings that exist', () => {
    const metrics = page.match(/\bbullpen(_[a-z]+|:[a-z]+)_[a-z_]+\b/g) ?? []
    expect(metrics.filter((name) => !PUBLISHED.has(name))).toEqual([])
    const variables = page.match(/\bBULLPEN_[A-Z_]*[A-Z]\b/g) ?? []
    expect(variables.filter((name) => !SETTINGS.has(name))).toEqual([])
  })

  it('names error codes and reasons that exist', () => {
    expect(namesIn(page).filter((code) => !CODES.has(code))).toEqual([])
  })
})

const CODES = new Set<string>([
  ...WAIT_KINDS,
  ...Object.keys(ERRORS),
  ...Object.values(END_REASONS).flat(),
  ...COMMIT_REFUSALS,
  ...CANCEL_OUTCOMES,
  ...DRAIN_MODES,
  ...ORPHAN_REASONS,
  ...DIAGNOSIS_CHECKS,
  ...Object.keys(BULLMQ_CHECKS),
  ...DISCONNECT_REASONS,
  ...Object.keys(METRICS),
  ...PROCESS_METRICS,
  ...Object.values(METRICS).flatMap(({ labels }) => labels),
  ...Object.keys(SIMULATION_CODES),
  ...Object.keys(FOREIGN_NAMES),
])

it('the page on diagnosis names everything that a task may wait for', () => {
  const page = read('docs/how-to/diagnose.md')
  expect(WAIT_KINDS.filter((kind) => !page.includes(`| \`${kind}\``))).toEqual([])
})
