// Diagnoses the platform: carries out every check of the table, and sorts what they find.
import type { Diagnosis, DiagnosisCheck, Finding } from '@bullpen/contract'
import { DIAGNOSIS_CHECKS, timeText } from '@bullpen/contract/internal'
import { CHECKS } from './check-table.ts'
import type { DiagnosisFacts } from './facts.ts'

/** Carries out every check. */
export function diagnose(facts: DiagnosisFacts): Diagnosis {
  const findings: Finding[] = []
  const passed: DiagnosisCheck[] = []
  const skipped: DiagnosisCheck[] = []
  for (const check of DIAGNOSIS_CHECKS) {
    const { examine, reason, advice } = CHECKS[check]
    const found = examine(facts)
    if (found === undefined) skipped.push(check)
    else if (found.length === 0) passed.push(check)
    else findings.push(...found.map((each) => ({ check, reason, advice, ...each })))
  }
  const ofSeverity = (severity: Finding['severity']): readonly Finding[] =>
    findings.filter((finding) => finding.severity === severity)
  return { now: timeText(facts.now), findings: [...ofSeverity('error'), ...ofSeverity('warning')], passed, skipped }
}
