#!/bin/bash
# The entry point of slurmd, with sshd and sssd if sssd is configured.
#
# pam_slurm_adopt lets users log in only while they have a job here, and adds their processes to that job.
set -u
NAME=slurmd-ssh
. "${KUBESLURM_LIB:-/usr/local/lib/kubeslurm}/keep.sh"

adopt=${PAM_SLURM_ADOPT_OPTIONS:-action_adopt_failure=deny action_generic_failure=deny}
grep -q pam_slurm_adopt /etc/pam.d/sshd \
  || sed -i "0,/^@include common-account/s//account required pam_slurm_adopt.so $adopt\n&/" /etc/pam.d/sshd

if [[ -s /etc/sssd/sssd.conf ]]; then
  keep_sssd &
  keep_sshd &
fi
exec /usr/local/bin/entrypoint.sh "$@"
