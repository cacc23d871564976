// Writes the dashboards to the folder that contains the Kubernetes manifests. To run it, use `npm run dashboards` in this
// package.
import { mkdirSync, writeFileSync } from 'node:fs'
import { DASHBOARDS, dashboardFile } from './index.ts'

const folder = new URL('../../../../k8s/base/dashboards/', import.meta.url)
mkdirSync(folder, { recursive: true })
for (const [name, dashboard] of Object.entries(DASHBOARDS)) {
  writeFileSync(new URL(`${name}.json`, folder), dashboardFile(dashboard))
}
