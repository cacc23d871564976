// Diagnoses an installation: carries out every check of the table, and sorts what they find.
import type { Diagnosis, DiagnosisCheck, Finding } from '@bullpen/contract'
import { DIAGNOSIS_CHECKS, timeText } from '@bullpen/contract/internal'
import { CHECKS, type Check } from './check-table.ts'
import type { DiagnosisFacts, Found, UnreachableNode } from './facts.ts'
import { unreachableNodes } from './server-checks.ts'

/** Carries out every check. */
export function diagnose(facts: DiagnosisFacts): Diagnosis {
  const findings: Finding[] = []
  const passed: DiagnosisCheck[] = []
  const skipped: DiagnosisCheck[] = []
  for (const check of DIAGNOSIS_CHECKS) {
    const found = CHECKS[check].examine(facts)
    const all = [found ?? []].flat()
    if (found === undefined) skipped.push(check)
    else if (all.length === 0) passed.push(check)
    else findings.push(...all.map((each) => findingOf(check, each)))
  }
  const ofSeverity = (severity: Finding['severity']): readonly Finding[] =>
    findings.filter((finding) => finding.severity === severity)
  return { now: timeText(facts.now), findings: [...ofSeverity('error'), ...ofSeverity('warning')], passed, skipped }
}

/** Returns the diagnosis if the store could not be read. `problem` says why, unless nodes of a cluster are not reachable. */
export function diagnoseWithoutStore(
  problem: string,
  now: number,
  unreachable: readonly UnreachableNode[] = [],
): Diagnosis {
  const check = 'redis_connection'
  const found: readonly Found[] =
    unreachable.length > 0 ? unreachableNodes({ unreachable }) : [{ severity: 'error', problem }]
  return {
    now: timeText(now),
    findings: found.map((each) => findingOf(check, each)),
    passed: [],
    skipped: DIAGNOSIS_CHECKS.filter((each) => each !== check),
  }
}

function findingOf(check: DiagnosisCheck, { advice: ownAdvice, runbook: ownRunbook, ...found }: Found): Finding {
  const { reason, advice: generalAdvice, runbook: generalRunbook }: Check = CHECKS[check]
  const runbook = ownRunbook ?? generalRunbook
  const advice = ownAdvice ?? generalAdvice
  return {
    check,
    severity: 'warning',
    reason,
    ...found,
    advice: runbook === undefined ? advice : `${advice}; see the runbook "${runbook}"`,
  }
}
