// Ends the output of a test run with the slowest tests, what the machine lacks, and one line of totals. A skipped test counts as
// failed.
import { relative } from 'node:path'
import { UserError } from '../system/user-error.mjs'

const SLOWEST = 10

/** @param {readonly import('vitest/node').TestModule[]} modules */
function collect(modules, root) {
  return modules.flatMap((module) => {
    const file = relative(root, module.moduleId)
    const tests = [...module.children.allTests()].map((test) => ({
      name: `${file} > ${test.fullName}`,
      state: test.result().state,
      duration: test.diagnostic()?.duration ?? 0,
    }))
    // A file that cannot be loaded contains no tests, but must count as a failure.
    const broken = module.errors().length > 0 ? [{ name: file, state: 'failed', duration: 0 }] : []
    return [...tests, ...broken]
  })
}

/** Returns what users can do about failures, each once: a missing program fails many tests, in hooks as well. */
function advice(modules) {
  const suites = modules.flatMap((module) => [module, ...module.children.allSuites()])
  const tests = modules.flatMap((module) => [...module.children.allTests()])
  const errors = [...suites.flatMap((suite) => suite.errors()), ...tests.flatMap((test) => test.result().errors ?? [])]
  return [...new Set(errors.filter(({ name }) => name === UserError.name).map(({ message }) => message))]
}

export default class TotalsReporter {
  /** @param {import('vitest/node').Vitest} vitest */
  onInit(vitest) {
    this.vitest = vitest
  }

  onTestRunEnd(modules, unhandledErrors) {
    const { root, testNamePattern } = this.vitest.config
    const selected = ({ state }) => testNamePattern === undefined || state !== 'skipped'
    const tests = collect(modules, root).filter(selected)
    const passed = tests.filter(({ state }) => state === 'passed').length
    const notRun = tests.filter(({ state }) => state === 'skipped' || state === 'pending')
    const none = tests.length === 0 ? 1 : 0 // a run without tests proves nothing
    const failed = tests.length - passed + unhandledErrors.length + none

    const slowest = tests.toSorted((a, b) => b.duration - a.duration).slice(0, SLOWEST)
    console.log(`The slowest ${slowest.length} tests:`)
    for (const { name, duration } of slowest) console.log(`  ${(duration / 1000).toFixed(2).padStart(7)} s  ${name}`)
    if (notRun.length > 0)
      console.log(`\nNot run, counted as failed:\n${notRun.map(({ name }) => `  ${name}`).join('\n')}`)
    for (const text of advice(modules)) console.log(`\n${text}`)
    console.log(`\n${passed} passed, ${failed} failed`)
    if (failed > 0) process.exitCode = 1
  }
}
