// Tests that the drill runs what the rendered manifests say.
import { expect, it } from 'vitest'
import { readAutoscaler } from './autoscaler-manifest.ts'
import { compressed } from './autoscaler-run.ts'

const manifest = readAutoscaler('bullpen-worker-io')

it("the metrics become what prometheus-adapter asks Prometheus, with the autoscaler's targets", () => {
  expect(manifest.metrics).toEqual(
    ['files', 'mail'].flatMap((queue) => [
      { expression: `max(bullpen:queue_backlog_workers{namespace="bullpen",queue="${queue}"}) by (queue)`, target: 1 },
      { expression: `max(bullpen:queue_busy_workers{namespace="bullpen",queue="${queue}"}) by (queue)`, target: 0.8 },
    ]),
  )
})

it('the workers have the settings of the pods', () => {
  expect(manifest.worker).toEqual({
    pools: { files: 20, mail: 50 },
    drainTimeout: '45s',
    grace: '5s',
    terminationGrace: '60s',
  })
  expect(manifest.terminationGraceMs).toBe(60_000)
})

it('a compressed behaviour differs only in its times', () => {
  const { scaleDown } = manifest.behavior
  expect(compressed(manifest.behavior, 10).scaleDown).toEqual({
    ...scaleDown,
    stabilizationWindowSeconds: 30,
    policies: [{ type: 'Percent', value: 25, periodSeconds: 6 }],
  })
})

it('an autoscaler that does not exist is reported', () => {
  expect(() => readAutoscaler('bullpen-worker')).toThrow('bullpen-worker is not in k8s/rendered/backlog.yaml')
})
