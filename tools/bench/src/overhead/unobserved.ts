// Is preloaded into a process in order to turn off its metrics and logs, which the product does not offer: whatever imports Bullpen's
// telemetry gets a module that does nothing. The events themselves are still created.
import { registerHooks } from 'node:module'

const TELEMETRY = '@bullpen/telemetry/internal'
const SILENT = new URL('./silent-telemetry.ts', import.meta.url).href

registerHooks({
  resolve(specifier, context, next) {
    const isReplaced = specifier === TELEMETRY && context.parentURL !== SILENT
    return next(isReplaced ? SILENT : specifier, context)
  },
})
