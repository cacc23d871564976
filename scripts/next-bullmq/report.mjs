// Writes the report of a test run against another version of BullMQ.
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The maximum number of diff lines to show for one difference. */
const DIFF_LINES = 12
/** The maximum number of lines to show from a failed test's or the compiler's output. */
const MESSAGE_LINES = 6

const HEADINGS = { script: 'Script texts', arguments: 'Positions of keys and arguments', method: 'Methods' }

/**
 * @typedef {{ kind: 'script' | 'arguments' | 'method', message: string, diff: readonly string[] }} Difference
 * @typedef {{ name: string, message: string }} Failure
 * @typedef {object} Outcome
 * @property {string} installed the version that Bullpen is pinned to
 * @property {string} tested
 * @property {boolean} isNewest whether `tested` is the newest version of the registry
 * @property {Readonly<Record<Difference['kind'], number>>} totals how many of each kind Bullpen relies on
 * @property {readonly Difference[]} differences
 * @property {readonly string[]} typeErrors
 * @property {{ passed: number, failures: readonly Failure[] }} tests
 */

/**
 * Returns whether the tested version may replace the installed one, as far as types and tests can tell.
 * @param {Pick<Outcome, 'typeErrors' | 'tests'>} outcome
 */
export function isCompatible({ typeErrors, tests }) {
  return typeErrors.length === 0 && tests.failures.length === 0 && tests.passed > 0
}

/** @param {Outcome} outcome */
export function reportOf(outcome) {
  const { installed, tested, isNewest, totals, differences, typeErrors, tests } = outcome
  const newest = isNewest ? ', the newest of the registry' : ''
  return [
    tested === installed
      ? `BullMQ ${tested}${newest}, which is the installed version`
      : `BullMQ ${tested}${newest}; the installed version is ${installed}`,
    ...(differences.length === 0 ? [] : [`In a diff, - is BullMQ ${installed} and + is BullMQ ${tested}.`]),
    ...Object.entries(HEADINGS).flatMap(([kind, heading]) => {
      const found = differences.filter((difference) => difference.kind === kind)
      const entries = found.flatMap(({ message, diff }) => [`  ${message}`, ...shorten(diff, DIFF_LINES, '    ')])
      return ['', `${heading}: ${found.length} of ${totals[kind]} differ`, ...entries]
    }),
    '',
    `Types: ${counted(typeErrors.length, 'error')}`,
    ...shorten(typeErrors, MESSAGE_LINES, '  '),
    '',
    `Tests (pins and conformance suite): ${tests.passed} passed, ${tests.failures.length} failed`,
    ...tests.failures.flatMap(({ name, message }) => [
      `  ${name}`,
      ...shorten(message.split('\n'), MESSAGE_LINES, '    '),
    ]),
    '',
    verdict(outcome),
  ].join('\n')
}

function verdict(outcome) {
  const { installed, tested, differences } = outcome
  if (!isCompatible(outcome)) {
    return tested === installed
      ? 'The types or tests fail with the installed version, so the failures are not caused by another BullMQ.'
      : `Bullpen does not work with BullMQ ${tested}. To see what fails without it: npm run test:next -- --version ${installed}`
  }
  if (differences.length === 0) return 'Nothing that Bullpen relies on has changed.'
  return `The types and tests pass with BullMQ ${tested}. Look at each difference before you upgrade.`
}

function counted(count, noun) {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`
}

function shorten(lines, most, indent) {
  const shown = lines.slice(0, most).map((line) => `${indent}${line}`)
  return lines.length <= most ? shown : [...shown, `${indent}… ${counted(lines.length - most, 'more line')}`]
}

/**
 * Returns the changed lines of a text as git shows them, without context and without comments.
 * @param {string} before
 * @param {string} after
 * @param {string} directory for two files, which are overwritten
 */
export function changedLines(before, after, directory) {
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'before'), `${withoutLuaComments(before)}\n`)
  writeFileSync(join(directory, 'after'), `${withoutLuaComments(after)}\n`)
  const args = ['diff', '--no-index', '--no-color', '--unified=0', '--ignore-space-change', 'before', 'after']
  const { stdout } = spawnSync('git', args, { cwd: directory, encoding: 'utf8' })
  // The header ends at the first hunk.
  const lines = stdout.split('\n').slice(4)
  if (lines.length === 0 && before !== after) return ['only comments or spaces']
  return lines.filter((line) => /^[+-]/.test(line))
}

function withoutLuaComments(text) {
  return text.replace(/--\[\[[\s\S]*?\]\]\n?/g, '').replace(/^\s*--.*\n/gm, '')
}
