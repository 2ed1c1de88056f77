#!/bin/bash
# Starts slapd with a new database, filled from the files in /ldif, and a self-signed certificate for TLS.
set -eu
suffix=${LDAP_SUFFIX:-dc=example,dc=org}
run=/run/slapd
mkdir -p "$run/data"

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=$(hostname)" \
  -keyout "$run/tls.key" -out "$run/tls.crt" 2> /dev/null

cat > "$run/slapd.conf" << CONF
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile $run/slapd.pid
TLSCertificateFile $run/tls.crt
TLSCertificateKeyFile $run/tls.key
database mdb
maxsize 104857600
suffix "$suffix"
rootdn "cn=admin,$suffix"
rootpw $(slappasswd -s "${LDAP_ADMIN_PASSWORD:-admin}")
directory $run/data
index objectClass,uid,uidNumber,gidNumber,memberUid eq
access to attrs=userPassword by self write by anonymous auth by * none
access to * by * read
CONF

for file in /ldif/*.ldif; do
  [[ -e $file ]] || continue
  slapadd -f "$run/slapd.conf" -l "$file"
done
exec slapd -f "$run/slapd.conf" -h "ldap:/// ldaps:///" -d 0
