// Formats a diagnosis as text: for each finding, what is wrong, why it matters, and what to do.
import type { Finding } from '@bullpen/contract'
import { type Layout, tableLines } from './columns.ts'
import { count, plain } from './format.ts'

/** A diagnosis of any system: its findings, and the names of its other checks. */
export interface AnyDiagnosis {
  readonly findings: readonly AnyFinding[]
  readonly passed: readonly string[]
  readonly skipped: readonly string[]
}

type AnyFinding = Pick<Finding, 'severity' | 'problem' | 'reason' | 'advice' | 'node'> & { readonly check: string }

export function diagnosisLines(diagnosis: AnyDiagnosis, layout: Layout): readonly string[] {
  return [...diagnosis.findings.flatMap((finding) => [...findingLines(finding, layout), '']), summaryLine(diagnosis)]
}

function findingLines(finding: AnyFinding, layout: Layout): readonly string[] {
  const { severity, check, node, problem, reason, advice } = finding
  const where = node === undefined ? '' : ` (node ${plain(node)})`
  const title = [severity === 'error' ? 'red' : 'yellow', severity.toUpperCase()] as const
  return [
    ...tableLines([[title, plain(check), `${plain(problem)}${where}`]], { ...layout, indent: 0 }),
    ...tableLines(
      [
        ['why', plain(reason)],
        ['do', plain(advice)],
      ],
      { ...layout, indent: 2 },
    ),
  ]
}

/** Summarizes the checks, such as `2 findings: 1 error, 1 warning; 19 checks passed`, and says why others were skipped. */
function summaryLine({ findings, passed, skipped }: AnyDiagnosis): string {
  const errors = findings.filter(({ severity }) => severity === 'error').length
  const found =
    findings.length === 0
      ? 'nothing found'
      : `${count(findings.length, 'finding')}: ${count(errors, 'error')}, ${count(findings.length - errors, 'warning')}`
  const summary = `${found}; ${count(passed.length, 'check')} passed`
  if (skipped.length === 0) return summary
  const isUnreachable = findings.some(({ check }) => check === 'redis_connection')
  const cause = isUnreachable ? 'of redis_connection' : 'Redis does not permit their commands'
  return `${summary}; ${skipped.length} skipped because ${cause} (--json names them)`
}
