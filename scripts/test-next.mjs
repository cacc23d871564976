// npm run test:next: tests Bullpen against another version of BullMQ, in a temporary copy of the workspace, and reports what
// changed in everything that Bullpen relies on.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { installBullmq, registryVersion } from './next-bullmq/registry.mjs'
import { changedLines, isCompatible, reportOf } from './next-bullmq/report.mjs'
import { copyWorkspace } from './next-bullmq/workspace-copy.mjs'
import { runBounded } from './system/bounded.mjs'
import { readOptions } from './system/options.mjs'
import { explain, UserError } from './system/user-error.mjs'

const TYPES_TIMEOUT_MS = 120_000
const TESTS_TIMEOUT_MS = 15 * 60_000
const INTERNALS = 'packages/bullmq/src/internals'
/**
 * This test is skipped because the installed version's table differs from that of any other version. The report shows the
 * differences instead.
 */
const TABLE_TEST = `${INTERNALS}/pins/interior.test.ts`

const root = join(import.meta.dirname, '..')

const { values } = readOptions(
  `npm run test:next -- [--version VERSION] [--accept]

Installs the newest BullMQ from the registry into a temporary copy of the workspace, compares what Bullpen relies on, type-checks,
runs the pins and the conformance suite, and prints a report. The workspace itself is not changed.

  --version VERSION  test this version or tag instead of the newest
  --accept           instead of testing, write the table of the installed BullMQ's scripts, positions and methods; use
                     this after an upgrade, once you have reviewed each difference`,
  { options: { version: { type: 'string' }, accept: { type: 'boolean', default: false } } },
)

const interiorModule = () => import(`../${INTERNALS}/pins/interior.fixture.ts`)

async function accept() {
  const { writePinned } = await import(`../${INTERNALS}/pins/pinned-table.fixture.ts`)
  const file = await writePinned()
  await runBounded(join(root, 'node_modules/.bin/biome'), ['format', '--write', file], { timeoutMs: TYPES_TIMEOUT_MS })
  console.log(`wrote ${relative(root, file)}`)
  return 0
}

async function compare(directory, scratch) {
  const { installedBullmq, readInterior } = await interiorModule()
  const { differences, pinned } = await import(`../${INTERNALS}/pins/compare.fixture.ts`)
  const [before, after] = [await readInterior(installedBullmq()), await readInterior(directory)]
  const textOf = {
    script: (interior, name) => interior.scripts[name]?.text ?? '',
    arguments: () => '',
    method: (interior, name) => interior.methods[name] ?? '',
  }
  return {
    installed: before.version,
    totals: {
      script: Object.keys(before.scripts).length,
      arguments: Object.keys(before.arguments).length,
      method: Object.keys(before.methods).length,
    },
    differences: differences(pinned(before), pinned(after)).map(({ kind, name, message }) => ({
      kind,
      message,
      diff: changedLines(textOf[kind](before, name), textOf[kind](after, name), scratch),
    })),
  }
}

async function typeErrors(copy, signal) {
  const tsc = join(copy, 'node_modules/typescript/bin/tsc')
  const { code, stdout, stderr, timedOut } = await runBounded(process.execPath, [tsc, '--pretty', 'false'], {
    timeoutMs: TYPES_TIMEOUT_MS,
    signal,
    cwd: copy,
  })
  if (timedOut) return [`the compiler did not finish within ${TYPES_TIMEOUT_MS / 1000} s`]
  return code === 0 ? [] : `${stdout}\n${stderr}`.split('\n').filter((line) => line.includes('error'))
}

async function runTests(copy, signal) {
  const results = join(copy, 'test-results.json')
  const args = [INTERNALS, 'packages/bullmq/src/conformance', `--exclude=${TABLE_TEST}`]
  const { stdout, stderr, timedOut } = await runBounded(
    process.execPath,
    [join(copy, 'scripts/test.mjs'), ...args, '--reporter=json', `--outputFile=${results}`],
    { timeoutMs: TESTS_TIMEOUT_MS, signal, cwd: copy },
  )
  if (timedOut) {
    return {
      passed: 0,
      failures: [{ name: 'the tests', message: `did not finish within ${TESTS_TIMEOUT_MS / 60_000} min` }],
    }
  }
  try {
    return readResults(JSON.parse(readFileSync(results, 'utf8')), copy)
  } catch {
    return { passed: 0, failures: [{ name: 'the tests', message: `did not run:\n${`${stdout}\n${stderr}`.trim()}` }] }
  }
}

function readResults({ testResults }, copy) {
  const failures = testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(copy, name)
    const failed = assertionResults
      .filter((test) => test.status !== 'passed')
      .map((test) => ({ name: `${file} > ${test.fullName}`, message: explanation(test, copy) }))
    // A file that cannot be loaded contains no tests.
    return status === 'failed' && failed.length === 0 ? [{ name: file, message }] : failed
  })
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults)
  return { passed: tests.filter(({ status }) => status === 'passed').length, failures }
}

/** Returns the failure messages without the packages' stack frames. */
function explanation({ failureMessages, status }, copy) {
  const lines = failureMessages.join('\n').split('\n')
  const relevant = lines.filter((line) => !/^\s+at /.test(line) || line.includes(copy))
  return relevant.join('\n').replaceAll(`${copy}/`, '') || status
}

async function testNext(signal, directory) {
  const newest = await registryVersion('latest', signal)
  const tested = values.version === undefined ? newest : await registryVersion(values.version, signal)
  console.error(`bullpen: installing bullmq ${tested}`)
  const replacement = await installBullmq(tested, join(directory, 'registry'), signal)
  const copy = join(directory, 'workspace')
  copyWorkspace({ root, copy, name: 'bullmq', replacement })
  const compared = await compare(join(copy, 'node_modules/bullmq'), join(directory, 'diff'))
  console.error('bullpen: checking the types, and running the pins and the conformance suite')
  const outcome = {
    ...compared,
    tested,
    isNewest: tested === newest,
    typeErrors: await typeErrors(copy, signal),
    tests: await runTests(copy, signal),
  }
  if (signal.aborted) throw new UserError('stopped before the tests had finished')
  console.log(`\n${reportOf(outcome)}`)
  return isCompatible(outcome) ? 0 : 1
}

async function inTemporaryDirectory() {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(name, () => stop.abort())
  const directory = mkdtempSync(join(tmpdir(), 'bullpen-next-bullmq-'))
  try {
    return await testNext(stop.signal, directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const run = values.accept ? accept : inTemporaryDirectory
process.exitCode = await run().catch((error) => {
  console.error(explain(error))
  return 1
})
