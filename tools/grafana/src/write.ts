// Writes the dashboards to the folder that contains the Kubernetes manifests. To run it, use `npm run dashboards` in
// packages/telemetry.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dashboardFiles } from './index.ts'

const folder = new URL('../../../k8s/base/dashboards/', import.meta.url)
const files = dashboardFiles()
mkdirSync(folder, { recursive: true })
for (const file of readdirSync(folder)) if (!Object.hasOwn(files, file)) rmSync(new URL(file, folder))
for (const [name, text] of Object.entries(files)) writeFileSync(new URL(name, folder), text)
