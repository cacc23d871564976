// Implements the client's method that checks the installation. It needs the HTTP API.
import type { Diagnosis } from '@bullpen/contract'
import { isDiagnosis } from '../http/responses.ts'
import type { SendRequest } from '../repetition.ts'
import type { Abortable } from '../task-handle.ts'

export interface DiagnosisCalls {
  /**
   * Examines Redis, the configuration, the workers, the queues and the schedules, and returns what is wrong, why it matters, and what to
   * do about it. Changes nothing. Takes as long as six round trips to Redis, because the queues are examined at the same time.
   */
  diagnose(options?: Abortable): Promise<Diagnosis>
}

export function diagnosisCalls(send: SendRequest): DiagnosisCalls {
  return {
    async diagnose({ signal } = {}) {
      return send('look-up', { method: 'GET', path: 'v1/diagnosis', isExpected: isDiagnosis }, signal)
    },
  }
}
