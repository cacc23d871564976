// Writes the alerts to the folder that contains the Kubernetes manifests. To run it, use `npm run alerts` in this package.
import { mkdirSync, writeFileSync } from 'node:fs'
import { prometheusRuleFile, rulesFile } from './index.ts'

const k8s = new URL('../../../../k8s/', import.meta.url)

function write(name: string, text: string): void {
  const file = new URL(name, k8s)
  mkdirSync(new URL('./', file), { recursive: true })
  writeFileSync(file, text)
}

write('alerts/bullpen.rules.yaml', rulesFile())
write('overlays/prometheus-operator/alerts.yaml', prometheusRuleFile())
