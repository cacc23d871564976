// Tests the alerts with promtool: the rules are valid, and each alert fires when it should and only then.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promtool } from '@bullpen/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { SCALING_RULES } from '../scaling/scaling-rules.ts'
import { ALERT_CASES, type AlertCases, type FullCase, fullCase } from './alert-cases.fixture.ts'
import { ALERTS, type AlertRule, prometheusRuleFile, RUNBOOKS, rulesFile } from './index.ts'

const root = new URL('../../../../', import.meta.url)
const committed = (file: string): string => readFileSync(new URL(file, root), 'utf8')

describe('the alerts', () => {
  it.each([
    ['k8s/alerts/bullpen.rules.yaml', rulesFile()],
    ['k8s/overlays/prometheus-operator/alerts.yaml', prometheusRuleFile()],
  ])(
    'are committed in %s exactly as the code writes them (if this fails: npm run alerts -w packages/telemetry)',
    (file, text) => {
      expect(committed(file)).toBe(text)
    },
  )

  it('are valid for promtool', async () => {
    const { code, output } = await promtool(['check', 'rules', '--lint-fatal', file('rules.yaml', rulesFile())])
    expect(code, output).toBe(0)
    expect(output).toContain(`${ALERTS.length + SCALING_RULES.length} rules found`)
  })

  // promtool evaluates days of samples, which takes a busy machine minutes.
  it('fire when they should, and only then', async () => {
    // Each alert has a file of its own, because promtool evaluates all rules of a file for each of its tests.
    const files = ALERTS.map((rule) => {
      const rule_files = [file('rules.yaml', rulesFile({ alerts: [rule] }))]
      const cases = ALERT_CASES[rule.name]
      const tests = promtoolTests(rule, cases)
      return file(
        'tests.yaml',
        JSON.stringify({ rule_files, evaluation_interval: cases?.evaluatedEvery ?? '1m', tests }),
      )
    })
    const { code, output } = await promtool(['test', 'rules', ...files])
    expect(code, output).toBe(0)
  })

  it('link their runbook pages if the address of the runbook is given', async () => {
    const [rule = expect.fail()] = ALERTS
    const text = rulesFile({ alerts: [rule], runbookUrl: 'https://wiki.example/runbook/' })
    expect(text).toContain(`\n          runbook_url: "https://wiki.example/runbook/${rule.runbook}"\n`)
    expect(prometheusRuleFile({ alerts: [rule], runbookUrl: 'https://wiki.example/runbook' })).toContain(
      `\n            runbook_url: "https://wiki.example/runbook/${rule.runbook}"\n`,
    )
    expect(rulesFile()).not.toContain('runbook_url')
    const { code, output } = await promtool(['check', 'rules', '--lint-fatal', file('rules.yaml', text)])
    expect(code, output).toBe(0)
  })

  it('have a case in which they fire, and one in which they do not', () => {
    expect(Object.keys(ALERT_CASES).toSorted()).toEqual(ALERTS.map(({ name }) => name).toSorted())
    for (const [name, { quiet }] of Object.entries(ALERT_CASES)) expect(Object.keys(quiet), name).not.toEqual([])
  })

  it('name only labels that their expressions keep', () => {
    for (const { name, expr, summary } of ALERTS) {
      for (const [, label = ''] of summary.matchAll(/\$labels\.(\w+)/g)) {
        expect(expr, name).toMatch(new RegExp(`by \\([^)]*\\b${label}\\b|^up == 0`))
      }
    }
  })
})

describe('the runbooks', () => {
  /** Pages for which there is no alert, because no metric shows the symptom, or because no threshold fits every pipeline. */
  const WITHOUT_ALERT = ['orphaned-keys.md', 'unfinished-groups-and-runs.md', 'worker-not-ready.md']

  it('contain a page for every alert, which names the alert', () => {
    for (const { name, runbook } of ALERTS)
      expect(committed(`${RUNBOOKS}/${runbook}`), runbook).toContain(`\`${name}\``)
  })

  it('are all linked from the list of runbooks, and name only alerts that exist', () => {
    const list = committed('docs/README.md')
    const pages = [...new Set([...ALERTS.map(({ runbook }) => runbook), ...WITHOUT_ALERT])]
    const linked = [...list.matchAll(/\(runbook\/([\w-]+\.md)\)/g)].map(([, page]) => page)
    expect(linked.toSorted()).toEqual(pages.toSorted())
    for (const page of pages) {
      for (const [name] of committed(`${RUNBOOKS}/${page}`).matchAll(/(?<=`)Bullpen[A-Z]\w+(?=`)/g)) {
        expect(
          ALERTS.map((rule) => rule.name),
          `${page} names ${name}`,
        ).toContain(name)
      }
    }
  })
})

/** Writes a file that is deleted after the test, and returns its path. */
function file(name: string, text: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-alerts-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  writeFileSync(join(dir, name), text)
  return join(dir, name)
}

/** Returns an alert's cases in the format of `promtool test rules`. */
function promtoolTests(rule: AlertRule, cases: AlertCases | undefined): readonly object[] {
  if (cases === undefined) return []
  const fires = fullCase(cases, cases.fires)
  return [
    ...Object.entries({ fires, ...cases.alsoFires }).map(([name, given]) => {
      const each = fullCase(cases, given)
      return { name, case: each, alerts: [each] }
    }),
    ...(namesInstallation(fires) ? [] : [inTwoInstallations(fires)]),
    ...Object.entries(cases.quiet).map(([name, given]) => ({ name, case: fullCase(cases, given), alerts: [] })),
  ].map(({ name, case: { series, at }, alerts }) => ({
    name: `${rule.name}: ${name}`,
    interval: '1m',
    input_series: Object.entries(series).map(([selector, values]) => ({ series: selector, values })),
    alert_rule_test: [
      {
        eval_time: at,
        alertname: rule.name,
        exp_alerts: alerts.map(({ labels, figure }) => ({
          exp_labels: { ...labels, severity: rule.severity },
          exp_annotations: {
            summary: withLabels(rule.summary, labels) + (figure === undefined ? '' : ` (now ${figure})`),
            runbook: `${RUNBOOKS}/${rule.runbook}`,
          },
        })),
      },
    ],
  }))
}

const namesInstallation = ({ series }: FullCase): boolean =>
  Object.keys(series).some((selector) => selector.includes('namespace='))

/** The case in which both of two installations have the same trouble, so that each has an alert of its own, with its own figure. */
function inTwoInstallations({ series, at, ...expected }: FullCase) {
  const of = (namespace: string) => ({
    series: Object.fromEntries(
      Object.entries(series).map(([selector, values]) => [
        selector.replace('{', `{namespace="${namespace}", `),
        values,
      ]),
    ),
    alert: { ...expected, labels: { ...expected.labels, namespace } },
  })
  const [live, staging] = [of('live'), of('staging')]
  return {
    name: 'two installations',
    case: { series: { ...live.series, ...staging.series }, at },
    alerts: [live.alert, staging.alert],
  }
}

const withLabels = (summary: string, labels: Readonly<Record<string, string>>): string =>
  summary.replace(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => labels[label] ?? '')
